"""Changes of RocketMQ 4.x's `plain_acl.yml`, as requests 50, 51 and 53 ask for them. Pure.

The file is written anew, as by RocketMQ: comments in it are lost. What a request does not name
stays. Source: PlainPermissionManager of RocketMQ 4.9.8, whose memory and file differ after a change
until it reads the file again; here the file decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sprocket.auth.plain_files import (
    PERMISSION_WORDS,
    PlainAccount,
    PlainFile,
    PlainVersion,
    read_plain_file,
)
from sprocket.base.errors import ConfigError, UsageError
from sprocket.base.suggestions import shown

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AccountChange:
    """An account as a request describes it; None for what it does not name."""

    access_key: str
    secret_key: str | None = field(default=None, repr=False)
    is_admin: bool = False
    white: str | None = None
    default_topic: str | None = None
    default_group: str | None = None
    topics: Sequence[str] | None = None
    groups: Sequence[str] | None = None

    def row(self) -> _Row:
        """What it names, as a file has it."""
        named = {
            "accessKey": self.access_key,
            "secretKey": self.secret_key or None,
            "whiteRemoteAddress": self.white,
            "admin": self.is_admin,
            "defaultTopicPerm": self.default_topic or None,
            "defaultGroupPerm": self.default_group or None,
            "topicPerms": None if self.topics is None else list(self.topics),
            "groupPerms": None if self.groups is None else list(self.groups),
        }
        return {name: value for name, value in named.items() if value is not None}

    def check(self) -> None:
        """
        Raises:
            UsageError: a permission is no word that 4.x knows.
        """
        for text in [*(self.topics or ()), *(self.groups or ())]:
            if text.rpartition("=")[2].strip() not in PERMISSION_WORDS:
                raise UsageError(f"{shown(text)} is not NAME=PUB, SUB, PUB|SUB or DENY")
        for word in (self.default_topic, self.default_group):
            if word and word.strip() not in PERMISSION_WORDS:
                raise UsageError(f"{shown(word)} is not PUB, SUB, PUB|SUB or DENY")


def with_account(file: PlainFile, change: AccountChange, now_ms: int) -> bytes:
    """The file with an account made or changed.

    Raises:
        UsageError: it would not be a file that can be read again.
    """
    change.check()
    rows = _rows(file)
    at = next((at for at, row in enumerate(rows) if row["accessKey"] == change.access_key), None)
    if at is None:
        rows.append(change.row())
    else:
        rows[at] |= change.row()
    return _written(file, rows, _white(file), now_ms)


def without_account(file: PlainFile, access_key: str, now_ms: int) -> bytes:
    """The file without an account."""
    rows = [row for row in _rows(file) if row["accessKey"] != access_key]
    return _written(file, rows, _white(file), now_ms)


def with_white(file: PlainFile, addresses: Sequence[str], now_ms: int) -> bytes:
    """The file with other white addresses, from which everything passes.

    Raises:
        UsageError: one is not valid.
    """
    return _written(file, _rows(file), list(addresses), now_ms)


def _white(file: PlainFile) -> list[str]:
    return [at.text for at, _ in file.white]


def _rows(file: PlainFile) -> list[_Row]:
    return [dict(_row(account)) for account in file.accounts]


def _row(account: PlainAccount) -> Iterator[tuple[str, Any]]:
    yield "accessKey", account.name.text
    yield "secretKey", account.secret_key
    if account.white is not None:
        yield "whiteRemoteAddress", account.white[0].text
    yield "admin", account.is_admin
    if account.default_topic is not None:
        yield "defaultTopicPerm", account.default_topic.at.text
    if account.default_group is not None:
        yield "defaultGroupPerm", account.default_group.at.text
    if account.topics:
        yield "topicPerms", [each.at.text for each in account.topics]
    if account.groups:
        yield "groupPerms", [each.at.text for each in account.groups]


def _written(file: PlainFile, rows: list[_Row], white: list[str], now_ms: int) -> bytes:
    import yaml  # whoever has read the file has it

    parts: _Row = {}
    if white:
        parts["globalWhiteRemoteAddresses"] = white
    parts["accounts"] = rows
    parts["dataVersion"] = [PlainVersion(file.version.counter + 1, now_ms)._asdict()]
    text: str = yaml.safe_dump(parts, allow_unicode=True, sort_keys=False, default_flow_style=False)
    data = text.encode()
    try:
        read_plain_file(file.name, data)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    return data
