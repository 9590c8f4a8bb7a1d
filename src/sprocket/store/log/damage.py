"""Distinguishes damage in the middle of the log from the end of the log.

After a loss of power, anything may follow the part that was synced, also whole records behind
broken ones. The log ends there, and nothing that was acknowledged as safe is lost. But if messages
that had been on the disk follow a broken place, it is damage: to cut the log there would lose them
silently.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord
from sprocket.message.record import Record
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.whole import checked, next_whole
from sprocket.store.state.checkpoint import Checkpoint


class Damage(NamedTuple):
    """A broken place of the log.

    Attributes:
        path: the file.
        position: byte of the file where it begins.
        start: log offset where it begins.
        end: log offset of the next whole record.
        why: what is wrong there.
    """

    path: str
    position: int
    start: int
    end: int
    why: str

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged at byte {self.position} (log offset {self.start}): "
            f"{self.why}; the next message is at log offset {self.end}"
        )


class KnownFlushed(NamedTuple):
    """How much of the log is known to have been on the disk.

    Attributes:
        end: everything before this log offset was; -1 if no offset is known.
        stored_ms: messages stored up to this time were; -1 if no time is known.
    """

    end: int
    stored_ms: int

    @classmethod
    def of(cls, checkpoint: Checkpoint, *, limit: int, was_stopped: bool) -> KnownFlushed:
        """From a checkpoint; the whole log after an orderly stop that left no fields of ours.

        Args:
            limit: log offset after the last file.
        """
        if checkpoint.flushed is not None:
            return cls(checkpoint.flushed, -1)
        return cls(limit, -1) if was_stopped else cls(-1, checkpoint.safe_log_ms)

    def has(self, record: Record) -> bool:
        """Whether a record was on the disk."""
        return record.log_offset + record.size <= self.end or record.stored_ms <= self.stored_ms


def damage_at(log: CommitLog, at: int, known: KnownFlushed) -> Damage | None:
    """The damage at a log offset where no whole record begins; None if the log ends there.

    It ends there if no message behind it is known to have been on the disk.
    """
    until = known.end if known.stored_ms < 0 else log.segments.limit
    if at >= until:
        return None
    record = _whole_behind(log, at, until)
    if record is None or not known.has(record):
        return None
    return _describe(log, at, record.log_offset)


def _whole_behind(log: CommitLog, at: int, until: int) -> Record | None:
    segments = log.segments
    if segments.has(at):
        segment = segments.at(at)
        found = next_whole(segment.file, segment.start, at - segment.start)
        if found is not None:
            return found
    for start in segments.starts:
        if at < start < until:
            file = segments.at(start).file
            try:
                return checked(file, 0, start)
            except CorruptRecord:
                found = next_whole(file, start, 0)
                if found is not None:
                    return found
    return None


def _describe(log: CommitLog, at: int, end: int) -> Damage:
    segments = log.segments
    file_start = at - at % segments.file_bytes
    path = segments.path_of(file_start)
    if not segments.has(at):
        return Damage(path, 0, at, end, "the file is missing")
    try:
        checked(segments.at(at).file, at - file_start, at)
        why = "it is whole now"
    except CorruptRecord as error:
        why = str(error)
    return Damage(path, at - file_start, at, end, why)


def missing_file(log: CommitLog, until: int) -> Damage | None:
    """The first file that is missing between others, before a log offset."""
    starts = log.segments.starts
    for before, after in pairwise(starts):
        missing = before + log.segments.file_bytes
        if missing < after and missing < until:
            return _describe(log, missing, after)
    return None
