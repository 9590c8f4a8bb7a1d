"""What an acting master has delivered at other brokers: the log offsets of the records. Pure.

Its own log must stay a copy, so it cannot show what was delivered, as a master's log does. So this
table says it: to the master that comes back, and to this broker itself after a restart, also as the
master. Whoever delivers passes over these records.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sprocket.base.errors import RemoteProtocolError

#: Bytes of a packed table that is opened at most: some five million records.
_OPENED_BYTES_MAX = 64 << 20


class EscapedTable:
    """The records.

    Attributes:
        log_offsets: the log offset of each: a message with a delay level or a time of its own, or a
            half message.
        is_changed: whether it has changed since it was last saved.
    """

    def __init__(self) -> None:
        self.log_offsets: set[int] = set()
        self.is_changed = False

    def add(self, log_offset: int) -> None:
        """Adds a record whose message another broker has stored."""
        self.log_offsets.add(log_offset)
        self.is_changed = True

    def merge(self, log_offsets: Iterable[int], *, log_end: int) -> int:
        """Adds what another process of this broker's name has delivered.

        Args:
            log_end: the end of this broker's log. What it does not have, the other one cannot have
                copied from it.

        Returns:
            How many of the records were unknown.
        """
        before = len(self.log_offsets)
        self.log_offsets.update(each for each in log_offsets if 0 <= each < log_end)
        more = len(self.log_offsets) - before
        self.is_changed = self.is_changed or more > 0
        return more

    def forget(self, log_offsets: Iterable[int]) -> None:
        """Removes records that nobody will deliver any more."""
        before = len(self.log_offsets)
        self.log_offsets.difference_update(log_offsets)
        self.is_changed = self.is_changed or len(self.log_offsets) < before

    def packed(self) -> bytes:
        """The table as the body of a reply."""
        return zlib.compress(msgspec.json.encode(sorted(self.log_offsets)), 1)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        return {"logOffsets": sorted(self.log_offsets)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            ValueError: the JSON has another form.
        """
        found = state.get("logOffsets") or []
        if not isinstance(found, list):
            raise ValueError("logOffsets is no list")
        self.log_offsets.clear()
        self.log_offsets.update(int(each) for each in found)


def unpacked(body: bytes) -> set[int]:
    """The log offsets in a packed table.

    Raises:
        RemoteProtocolError: it is none, or too long.
    """
    opened = zlib.decompressobj()
    try:
        data = opened.decompress(body, _OPENED_BYTES_MAX)
        offsets = msgspec.json.decode(data, type=set[int])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise RemoteProtocolError(f"no table of delivered messages: {error}") from error
    return offsets
