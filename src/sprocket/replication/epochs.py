"""Epochs of a log: which part of it was written under which master. Pure.

Each master of a group has an *epoch*, higher than those of all masters before. A log's list of
epochs says at which log offset each of them begins; it ends where the next one begins, and the last
one where the log ends. Two logs are the same up to a place if they have there an epoch of the same
number that began at the same offset, because an epoch has one master, and a master appends only.

An epoch without records is replaced by one that begins at the same offset: so offsets rise, as
RocketMQ wants it.

The text of the file is RocketMQ's: the number of epochs, a checksum of the lines that follow, and a
line `epoch-offset` for each.

Source: EpochFileCache, CheckpointFile, UtilAll.crc32 of RocketMQ 5.3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

from sprocket.base.errors import StoreError

#: A list has at most so many epochs, the newest ones: a master of RocketMQ can send no more.
EPOCHS_MAX = 1000
_EPOCH_MAX = (1 << 31) - 1
_OFFSET_MAX = (1 << 63) - 1
_EPOCH, _START = itemgetter(0), itemgetter(1)


class EpochStart(NamedTuple):
    """One epoch of a log.

    Attributes:
        epoch: its number, from 0 on.
        start: log offset where it begins.
    """

    epoch: int
    start: int


class EpochList:
    """The epochs of one log, rising; a value that does not change.

    Attributes:
        entries: epochs with their starts. The first one may begin before the log does.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochStart | tuple[int, int]] = ()) -> None:
        """
        Raises:
            ValueError: epochs do not rise, offsets fall, or a number is out of range.
        """
        self.entries = tuple(EpochStart(*each) for each in entries)
        for epoch, start in self.entries:
            if not (0 <= epoch <= _EPOCH_MAX and 0 <= start <= _OFFSET_MAX):
                raise ValueError(f"no epoch {epoch} begins at log offset {start}")
        for before, after in pairwise(self.entries):
            if after.epoch <= before.epoch or after.start < before.start:
                raise ValueError(f"epoch {after} does not follow {before}")

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochList) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return "EpochList(" + ", ".join(f"{epoch}-{start}" for epoch, start in self.entries) + ")"

    @property
    def last(self) -> EpochStart | None:
        """The newest epoch; None without one."""
        return self.entries[-1] if self.entries else None

    @property
    def last_epoch(self) -> int:
        """The number of the newest epoch; -1 without one."""
        return self.entries[-1].epoch if self.entries else -1

    def added(self, epoch: int, start: int) -> EpochList:
        """The list with a new epoch, which begins at the end of its log.

        Raises:
            ValueError: it is not newer than the last one, or begins before that.
        """
        kept = self.entries
        if kept and kept[-1].epoch < epoch and kept[-1].start == start:
            kept = kept[:-1]
        return EpochList((*kept, EpochStart(epoch, start))[-EPOCHS_MAX:])

    def cut(self, end: int) -> EpochList:
        """The list of a log that is cut: without epochs that have no record before `end`."""
        return EpochList(each for each in self.entries if each.start < end)

    def within(self, end: int) -> EpochList:
        """The list without epochs that begin behind the end of the log, which a crash has moved."""
        return EpochList(each for each in self.entries if each.start <= end)

    def trimmed(self, log_start: int) -> EpochList:
        """The list without epochs all of whose records are before the start of the log."""
        first = 0
        while first + 1 < len(self.entries) and self.entries[first + 1].start <= log_start:
            first += 1
        return EpochList(self.entries[first:])

    def at(self, offset: int) -> EpochStart | None:
        """The epoch of the record at a log offset; None if it is before all of them.

        At the log's end, it is the epoch of the next record.
        """
        after = bisect_right(self.entries, offset, key=_START)
        return self.entries[after - 1] if after else None

    def end_of(self, entry: EpochStart, log_end: int) -> int:
        """The log offset where an epoch of this list ends.

        Args:
            log_end: where the log ends.
        """
        after = bisect_right(self.entries, entry.epoch, key=_EPOCH)
        return self.entries[after].start if after < len(self.entries) else log_end

    def common_end(self, end: int, other: EpochList, other_end: int) -> int | None:
        """The log offset up to which two logs are the same; None if they have no epoch in common.

        From the newest epoch down, the first one that begins at the same offset in both; the logs
        are the same up to the smaller of its two ends. Without such an epoch, two lists that both
        begin at 0 have nothing in common: the one had not copied the other when it began.

        Args:
            end: where the log of this list ends.
            other_end: where the other one's ends.
        """
        others = set(other.entries)
        for entry in reversed(self.entries):
            if entry in others:
                return min(self.end_of(entry, end), other.end_of(entry, other_end))
        begin_at_0 = (
            self.entries and other.entries and not (self.entries[0].start or other.entries[0].start)
        )
        return 0 if begin_at_0 else None

    def encode(self) -> bytes:
        """The text of the file `epochFileCheckpoint`."""
        lines = "".join(f"{epoch}-{start}\n" for epoch, start in self.entries)
        return f"{len(self.entries)}\n{_checksum(lines)}\n{lines}".encode()

    @classmethod
    def decode(cls, raw: bytes) -> EpochList:
        """From the text of a file.

        Raises:
            StoreError: it is no such text, or its checksum differs.
        """
        try:
            lines = raw.decode("ascii").split("\n")
            count, checksum = int(lines[0]), int(lines[1])
            rows = [line.rstrip("\r") for line in lines[2:] if line.strip()]
            found = cls(_entry(line) for line in rows)
        except (ValueError, IndexError) as error:
            raise StoreError(f"no list of epochs: {error}") from None
        # RocketMQ does not check a checksum of 0.
        if count != len(rows) or (
            checksum and checksum != _checksum("".join(f"{line}\n" for line in rows))
        ):
            raise StoreError("a list of epochs whose number or checksum is wrong")
        return found


def _entry(line: str) -> EpochStart:
    epoch, separator, start = line.partition("-")
    if not (separator and epoch.isdecimal() and start.isdecimal()):
        raise ValueError(f"{line[:40]!r} is no epoch")
    return EpochStart(int(epoch), int(start))


def _checksum(text: str) -> int:
    return crc32(text.encode()) & 0x7FFFFFFF
