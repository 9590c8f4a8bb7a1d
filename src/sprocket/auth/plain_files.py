"""Reads RocketMQ 4.x's `plain_acl.yml`: accounts and white addresses, each with its line. Pure.

A file may come from anywhere, so it is bounded, nothing in it is executed, and each fault names its
line. What 4.x reads in a way that surprises (a permission in lower case denies) is read as 4.x
does. Source: PlainPermissionManager, Permission and PlainAccessConfig of RocketMQ 4.9.8 (modules
acl and common); a broker whose file 4.x refuses does not start there, so it is refused here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sprocket.auth.plain_addresses import joined, white_networks
from sprocket.base.errors import ConfigError, UsageError
from sprocket.base.suggestions import nearest, shown

#: A file's bytes, and faults that are reported of it, at most.
FILE_BYTES_MAX = 1 << 20
_FAULTS_MAX = 20
#: Names and keys have more characters than this.
_KEY_LENGTH = 6
RETRY_PREFIX = "%RETRY%"
_FIELDS = (
    "accessKey",
    "secretKey",
    "whiteRemoteAddress",
    "admin",
    "defaultTopicPerm",
    "defaultGroupPerm",
    "topicPerms",
    "groupPerms",
)
_SECTIONS = ("globalWhiteRemoteAddresses", "accounts", "dataVersion")
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False, "no": False, "off": False, "0": False, "": False,
}  # fmt: skip
#: Permissions as 4.x reads them; any other text denies.
_PERMISSIONS = {
    "PUB": frozenset({"Pub"}),
    "SUB": frozenset({"Sub"}),
    "PUB|SUB": frozenset({"Pub", "Sub"}),
    "SUB|PUB": frozenset({"Pub", "Sub"}),
    "DENY": frozenset[str](),
}
#: The words that 4.x knows.
PERMISSION_WORDS = frozenset(_PERMISSIONS)
_PREFIX = "tag:yaml.org,2002:"


class LineText(NamedTuple):
    """A text of a file, and the number of its line."""

    text: str
    line: int


class PlainPermission(NamedTuple):
    """What an account may do with one topic or group, or with those that are not named.

    Attributes:
        name: of the topic or group; empty for those that are not named.
        rights: `Pub`, `Sub`; none if it is denied.
        is_known: whether RocketMQ knows the word; else it denies.
    """

    name: str
    rights: frozenset[str]
    is_known: bool
    at: LineText


@dataclass(frozen=True, slots=True)
class PlainAccount:
    """An account of a file.

    Attributes:
        white: where its requests pass without a check; with the networks that this is.
        default_topic, default_group: what it may do with those that are not named.
    """

    name: LineText
    secret_key: str = field(repr=False)
    is_admin: bool
    white: tuple[LineText, tuple[str, ...]] | None
    default_topic: PlainPermission | None
    default_group: PlainPermission | None
    topics: tuple[PlainPermission, ...]
    groups: tuple[PlainPermission, ...]


class PlainVersion(NamedTuple):
    """How often RocketMQ's requests have changed a file, and when they last did, ms."""

    counter: int = 0
    timestamp: int = 0


class PlainFile(NamedTuple):
    """A file.

    Attributes:
        white: addresses from which everything passes, with the networks that these are.
        version: of what requests change; people who write the file need not keep it.
    """

    name: str
    accounts: tuple[PlainAccount, ...]
    white: tuple[tuple[LineText, tuple[str, ...]], ...]
    version: PlainVersion = PlainVersion()


def read_plain_file(name: str, data: bytes) -> PlainFile:
    """Reads a file.

    Args:
        name: for faults.

    Raises:
        ConfigError: it is no such file; each fault is a line of the text, with its line.
        UsageError: PyYAML is not installed.
    """
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{name}: a file of accounts has at most {FILE_BYTES_MAX} bytes")
    reader = _Reader(name)
    root = _parsed(name, data)
    found = PlainFile(name, (), ()) if root is None else reader.file(root)
    if reader.faults:
        raise ConfigError("\n".join(reader.faults[:_FAULTS_MAX]))
    return found


def _parsed(name: str, data: bytes) -> Any:
    """The root node of a file; None if the file is empty."""
    try:
        import yaml
    except ImportError:
        raise UsageError(
            "plain_acl.yml is read with PyYAML: pip install 'sprocketmq[acl]'"
        ) from None
    try:
        return yaml.compose(data, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise ConfigError(f"{where}: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(f"{name}: no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{name}: it is nested more deeply than a file of accounts") from None


class _Reader:
    """Reads nodes of YAML, and gathers faults."""

    def __init__(self, name: str) -> None:
        self._name = name
        #: The nodes that were read. One that comes again is an alias, which could stand for more
        #: than the file could hold.
        self._read: set[int] = set()
        self.faults: list[str] = []

    def _fault(self, node: Any, text: str) -> None:
        self.faults.append(f"{self._name}, line {_line(node)}: {text}")

    def file(self, root: Any) -> PlainFile:
        parts = self._fields(root, _SECTIONS, "the file")
        accounts = [self._account(node) for node in self._items(parts, "accounts")]
        white = []
        for node in self._items(parts, "globalWhiteRemoteAddresses"):
            text = self._text(node)
            if text is not None and (networks := self._networks(node, text)):
                white.append((LineText(text, _line(node)), networks))
        found = tuple(each for each in accounts if each is not None)
        return PlainFile(self._name, found, tuple(white), _version(parts.get("dataVersion")))

    def _fields(self, node: Any, known: Sequence[str], what: str) -> dict[str, Any]:
        """The values of a mapping, by name. One without a value is left out."""
        if node.id != "mapping":
            self._fault(node, f"{what} is a list of NAME: VALUE")
            return {}
        if not self._is_new(node):
            return {}
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = self._text(key)
            if name is None:
                continue
            if name not in known:
                self._fault(key, f"there is no {shown(name)}{nearest(name, known)}")
            elif name in found:
                self._fault(key, f"{name} stands there twice")
            found[name] = value
        return {name: value for name, value in found.items() if not _is_null(value)}

    def _items(self, fields: dict[str, Any], name: str) -> Iterator[Any]:
        node = fields.get(name)
        if node is None:
            return
        if node.id != "sequence":
            self._fault(node, f"{name} is a list, with `- ` before each item")
        elif self._is_new(node):
            yield from node.value

    def _is_new(self, node: Any) -> bool:
        if id(node) in self._read:
            self._fault(node, "what an alias (*NAME) stands for is to be written out")
            return False
        self._read.add(id(node))
        return True

    def _account(self, node: Any) -> PlainAccount | None:
        before = len(self.faults)
        fields = self._fields(node, _FIELDS, "an account")
        if node.id != "mapping":
            return None
        name = self._key(node, fields, "accessKey")
        secret = self._key(node, fields, "secretKey")
        account = PlainAccount(
            LineText(name, _line(node)),
            secret,
            self._boolean(fields.get("admin")),
            self._white(fields.get("whiteRemoteAddress")),
            self._default(fields.get("defaultTopicPerm")),
            self._default(fields.get("defaultGroupPerm")),
            tuple(self._permissions(fields, "topicPerms")),
            tuple(self._permissions(fields, "groupPerms")),
        )
        return account if len(self.faults) == before else None

    def _key(self, account: Any, fields: dict[str, Any], field: str) -> str:
        node = fields.get(field)
        text = "" if node is None else self._text(node, is_secret=field == "secretKey")
        if text is not None and len(text) <= _KEY_LENGTH:
            self._fault(
                account if node is None else node,
                f"{field} has more than {_KEY_LENGTH} characters, or RocketMQ refuses the file",
            )
        return text or ""

    def _text(self, node: Any, *, is_secret: bool = False) -> str | None:
        """The text of a node, as RocketMQ has it.

        YAML reads some texts as numbers or times; what such a one is as a text again depends on
        the library, so those are refused.
        """
        if node.id != "scalar":
            self._fault(node, "a text is wanted")
            return None
        if not self._is_new(node):
            return None
        text = str(node.value)
        if node.tag not in (f"{_PREFIX}str", f"{_PREFIX}null") and not _is_plain(node.tag, text):
            what = "the text" if is_secret else shown(text)
            self._fault(
                node,
                f"YAML takes {what} for {node.tag.removeprefix(_PREFIX)}: write it in quotes, as "
                "clients write it",
            )
            return None
        return text

    def _boolean(self, node: Any) -> bool:
        if node is None:
            return False
        text = str(node.value).lower() if node.id == "scalar" else "?"
        if text not in _BOOLEANS:
            self._fault(node, "admin is true or false")
        return _BOOLEANS.get(text, False)

    def _white(self, node: Any) -> tuple[LineText, tuple[str, ...]] | None:
        text = None if node is None else self._text(node)
        networks = () if text is None else self._networks(node, text)
        return (LineText(text, _line(node)), networks) if text and networks else None

    def _networks(self, node: Any, text: str) -> tuple[str, ...]:
        try:
            return joined(white_networks(text))
        except UsageError as error:
            self._fault(node, str(error))
            return ()

    def _default(self, node: Any) -> PlainPermission | None:
        text = None if node is None else self._text(node)
        if text is None or not text.strip():
            return None
        return _permission("", text, LineText(text, _line(node)))

    def _permissions(self, fields: dict[str, Any], field: str) -> Iterator[PlainPermission]:
        for node in self._items(fields, field):
            text = self._text(node)
            if text is None:
                continue
            parts = [part for part in text.split("=") if part]
            if len(parts) != 2:
                self._fault(node, f"{field} has items as NAME=PUB|SUB, not {shown(text)}")
                continue
            yield _permission(parts[0].strip(), parts[1], LineText(text, _line(node)))


def _permission(name: str, word: str, at: LineText) -> PlainPermission:
    rights = _PERMISSIONS.get(word.strip())
    return PlainPermission(name, rights or frozenset(), rights is not None, at)


def _version(node: Any) -> PlainVersion:
    """The version in a node, as far as it is one."""
    items = node.value if node is not None and node.id == "sequence" else ()
    pairs = items[0].value if items and items[0].id == "mapping" else ()
    found = {
        key.value: int(value.value)
        for key, value in pairs
        if key.id == value.id == "scalar" and re.fullmatch(r"[0-9]{1,18}", value.value)
    }
    return PlainVersion(found.get("counter", 0), found.get("timestamp", 0))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _is_null(node: Any) -> bool:
    return bool(node.id == "scalar" and node.tag == f"{_PREFIX}null")


def _is_plain(tag: str, text: str) -> bool:
    """Whether a value that is no text has only one form as a text."""
    if tag == f"{_PREFIX}bool":
        return text in ("true", "false")
    return tag == f"{_PREFIX}int" and re.fullmatch(r"0|[1-9][0-9]*", text) is not None
