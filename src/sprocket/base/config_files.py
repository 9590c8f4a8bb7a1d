"""Loads settings from a file, then the environment, then the command line; the later one wins.

These are pure functions over text; the caller reads the file. A file is TOML with one table per
part (`[broker]`, `[store]`, `[nameserver]`), or one of RocketMQ's own `broker.conf` /
`.properties`, where each setting has RocketMQ's name or `part.name`. Environment variables are
called `SPROCKET_<PART>_<NAME>`.

Texts become values as follows: whole numbers are decimal; sizes may also be `64MiB`, `1GiB`, `512K`
(powers of 1024); booleans are true/false, yes/no, on/off, 1/0; `;` or `,` separates a list's texts.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

from sprocket.base.config import Declared, part_of, settings_of
from sprocket.base.errors import ConfigError

T = TypeVar("T")

#: The origin of a value that nobody set.
DEFAULT = "default"


class ConfigFile(NamedTuple):
    """A configuration file that has been read: its name (for messages) and its text."""

    name: str
    text: str


class LoadedConfig:
    """The result of loading.

    Attributes:
        notes: warnings, one line each.
        origins: by `part.name`, the source of its value.
    """

    def __init__(self, kinds: Sequence[type]) -> None:
        self.kinds = tuple(kinds)
        self.notes: list[str] = []
        self.origins: dict[str, str] = {}
        self._given: dict[str, Any] = {}
        self._made: dict[type, Any] = {}

    def of(self, kind: type[T]) -> T:
        """The configuration of one part."""
        made: T = self._made[kind]
        return made

    def set(self, declared: Declared, value: Any, origin: str) -> None:
        """Records a value; a later one replaces it.

        Raises:
            ConfigError: it is ill-typed or out of bounds.
        """
        complaint = declared.complaint(value)
        if complaint is not None:
            raise ConfigError(f"{origin}: {declared.key} {complaint}")
        self._given[declared.key] = value
        self.origins[declared.key] = origin

    def make(self) -> None:
        """Builds the configurations from the recorded values."""
        for kind in self.kinds:
            declared = settings_of(kind).values()
            values = {d.name: self._given[d.key] for d in declared if d.key in self._given}
            self._made[kind] = kind(**values)
            for each in declared:
                self.origins.setdefault(each.key, DEFAULT)


def load(
    kinds: Sequence[type],
    *,
    file: ConfigFile | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Loads the configurations of several parts from the same sources.

    Args:
        kinds: configuration classes. If two of them declare the same name of RocketMQ's, a value
            in a RocketMQ file belongs to the first.
        file: TOML or RocketMQ properties; suffix and content decide which.
        environment: all environment variables; only `SPROCKET_…` are read.
        overrides: from `part.name` to a value, or to its text; None is ignored.

    Raises:
        ConfigError: a setting is unknown, ill-typed or out of bounds. The text contains the place
            and the key, and for an unknown one the most similar known name.
    """
    loaded = LoadedConfig(kinds)
    if file is not None:
        _take_toml(loaded, file) if _is_toml(file) else _take_properties(loaded, file)
    _take_environment(loaded, environment or {})
    _take_overrides(loaded, overrides or {})
    loaded.make()
    return loaded


def _is_toml(file: ConfigFile) -> bool:
    if file.name.endswith(".toml"):
        return True
    if file.name.endswith(".properties"):
        return False
    return re.search(r"^\s*\[\s*[\w.\"-]+\s*\]\s*(#.*)?$", file.text, re.MULTILINE) is not None


def _take_toml(loaded: LoadedConfig, file: ConfigFile) -> None:
    try:
        tables = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file.name}: not valid TOML: {error}") from None
    parts = {part_of(kind): settings_of(kind) for kind in loaded.kinds}
    for part, table in tables.items():
        where = f"{file.name}:{_toml_line(file.text, None, part)}"
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: '{part}' stands outside a table such as [{min(parts)}]")
        if part not in parts:
            if part in ALL_PARTS:
                continue
            raise ConfigError(f"{where}: unknown table [{part}]{_nearest(part, ALL_PARTS)}")
        for name, value in table.items():
            where = f"{file.name}:{_toml_line(file.text, part, name)}"
            declared = parts[part].get(name)
            if declared is None:
                raise ConfigError(
                    f"{where}: unknown setting '{part}.{name}'{_nearest(name, parts[part])}"
                )
            loaded.set(declared, _from_toml(declared, value, where), where)


#: Tables that a file may have even if the command that reads it does not use them.
ALL_PARTS = ("broker", "client", "nameserver", "store")


def _from_toml(declared: Declared, value: Any, where: str) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and (declared.is_size or declared.type in (tuple, str)):
        return _from_text(declared, value, where)
    return value


def _toml_line(text: str, part: str | None, name: str) -> int:
    """The number of the line where a table, or a key of a table, begins; 1 if it is not found.

    `tomllib` reports no positions, so regular expressions search for it. They serve error
    messages only, and need not understand every form of TOML.
    """
    key = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=.]")
    dotted = re.compile(rf"\s*{part}\s*\.\s*{re.escape(name)}\s*=")
    table: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
        if header:
            table = header[1].strip("\"'")
            if part is None and table.split(".")[0] == name:
                return number
        elif (table == part and key.match(line)) or (table is None and dotted.match(line)):
            return number
    return 1


def _take_properties(loaded: LoadedConfig, file: ConfigFile) -> None:
    """Reads RocketMQ's own names and ours.

    One of RocketMQ's settings that has no meaning here gives a warning only, unless it asks for
    safety that is missing here: a broker must not run without access control, or without
    replicas, when its file demands them.
    """
    # The order of the tests matters: a setting that we support counts first, then one that we must
    # refuse, then one of RocketMQ's that may be ignored. Whatever is left is a typing error.
    known: dict[str, Declared] = {}
    for kind in loaded.kinds:
        for declared in settings_of(kind).values():
            for spelling in (*declared.rocketmq_names, declared.key):
                known.setdefault(spelling, declared)
    for number, name, text in properties(file.text):
        where = f"{file.name}:{number}"
        if name in known:
            loaded.set(known[name], _from_text(known[name], text, where), where)
        elif wanted := _demanded(name, text):
            raise ConfigError(
                f"{where}: '{name}={text}' asks for {wanted}, which there is not here; "
                "take the line out to go without"
            )
        elif name in rocketmq_settings():
            loaded.notes.append(f"{where}: RocketMQ's '{name}' has no meaning here")
        else:
            nearest = _nearest(name, {*known, *rocketmq_settings()})
            raise ConfigError(f"{where}: unknown setting '{name}'{nearest}")


#: By RocketMQ's name: the values that demand a feature, in lower case, and the feature.
_DEMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "aclEnable": (("true",), "access control"),
    "authenticationEnabled": (("true",), "access control"),
    "authorizationEnabled": (("true",), "access control"),
    "brokerRole": (("slave", "sync_master"), "replication"),
    "duplicationEnable": (("true",), "replication"),
    "enableControllerMode": (("true",), "replication"),
    "enableDLegerCommitLog": (("true",), "replication by DLedger"),
    "storeType": (("defaultrocksdb",), "queues in RocksDB"),
}


def _demanded(name: str, text: str) -> str | None:
    """The missing feature that a setting of RocketMQ's demands, in words; None if there is none."""
    values, what = _DEMANDS.get(name, ((), ""))
    return what if text.strip().lower() in values else None


def properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields (line number, key, value) of a Java properties file.

    Source: java.util.Properties: comments begin with `#` or `!`, a key ends at `=`, `:` or a
    blank, a line that ends with a backslash continues in the next, backslashes escape.
    """
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        logical = line.lstrip()
        if not logical or logical[0] in "#!":
            continue
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, (0, ""))[1].lstrip()
        key, value = _KEY.match(logical).groups()  # type: ignore[union-attr]  # matches any text
        yield number, _unescape(key), _unescape(value.rstrip())


_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROL.get(escaped, escaped)

    return _ESCAPE.sub(plain, text)


@cache
def rocketmq_settings() -> frozenset[str]:
    """All names that RocketMQ's own configuration files may contain."""
    text = resources.files("sprocket.base").joinpath("rocketmq_settings.txt").read_text("utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def _take_environment(loaded: LoadedConfig, environment: Mapping[str, str]) -> None:
    """Unknown variables give warnings only: container platforms set some with our prefix."""
    known = {d.environment: d for kind in loaded.kinds for d in settings_of(kind).values()}
    prefixes = tuple(f"SPROCKET_{part_of(kind)}_".upper() for kind in loaded.kinds)
    for name, text in sorted(environment.items()):
        where = f"environment variable {name}"
        if name in known:
            loaded.set(known[name], _from_text(known[name], text, where), where)
        elif name.startswith(prefixes):
            loaded.notes.append(f"{where} sets nothing{_nearest(name, known)}")


def _take_overrides(loaded: LoadedConfig, overrides: Mapping[str, Any]) -> None:
    known = {d.key: d for kind in loaded.kinds for d in settings_of(kind).values()}
    for key, value in overrides.items():
        if value is None:
            continue
        where = f"command line ({key})"
        declared = known.get(key)
        if declared is None:
            raise ConfigError(f"{where}: unknown setting '{key}'{_nearest(key, known)}")
        loaded.set(
            declared,
            _from_text(declared, value, where) if isinstance(value, str) else value,
            where,
        )


def _nearest(name: str, known: Any) -> str:
    """`; did you mean '…'?` if a known name is similar, else an empty text."""
    by_fold = {each.lower(): each for each in sorted(known)}
    near = difflib.get_close_matches(name.lower(), by_fold, n=1, cutoff=0.6)
    return f"; did you mean '{by_fold[near[0]]}'?" if near else ""


def _from_text(declared: Declared, text: str, where: str) -> Any:
    """Converts a text to a setting's value.

    Raises:
        ConfigError: it cannot be read as the setting's type.
    """
    if declared.about.choices is not None:
        folded = {choice.lower(): choice for choice in declared.about.choices}
        return folded.get(text.strip().lower(), text)
    if declared.optional and not text.strip():
        return None
    try:
        return _size(text.strip()) if declared.is_size else _READ[declared.type](text.strip())
    except ValueError:
        raise ConfigError(
            f"{where}: {declared.key} takes {declared.takes()}, not {text!r}"
        ) from None


_SIZE = re.compile(r"(-?[\d_]+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))


def _truth(text: str) -> bool:
    folded = text.lower()
    if folded not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[folded]


def _texts(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in re.split(r"[;,]", text) if each.strip())


_TRUTHS = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False, "no": False, "off": False, "0": False
}  # fmt: skip
_READ: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: _truth,
    str: str,
    tuple: _texts,
}
