"""How far log and views are on the disk: the file `checkpoint`, 4096 bytes.

`docs/formats/state-files.md` has the byte table, which a test compares with the structs below: five
numbers of Java's, then ours with checksums over both.

Java reads and writes the first five numbers only. Ours are valid while Java's numbers are
unchanged; a store that Java has used in between is recovered by the times in Java's numbers. The
confirmed offset, the fifth of them, is believed whoever wrote it: it only says what is certain.

Source: StoreCheckpoint of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from sprocket.base.ports import Disk, MappedFile

FILE_BYTES = 4096

_JAVA = struct.Struct(">qqqqq")
_OURS = struct.Struct(">8sq")
_CRC = struct.Struct(">I")
_OURS_AT = 64
_NAME = b"SPROCKET"
_FLUSHED = struct.Struct(">q")
_FLUSHED_AT = 88
_END = _FLUSHED_AT + _FLUSHED.size + _CRC.size

#: Java subtracts this from its times before it trusts them.
SAFETY_MS = 3000


class CheckpointFields(NamedTuple):
    """The fields of our part of the file.

    Attributes:
        replay_from: log offset from which the views must be replayed.
        flushed: log offset up to which the log is on the disk.
    """

    replay_from: int
    flushed: int


def marks_in(raw: bytes | memoryview) -> CheckpointFields | None:
    """Our part of the file; None if it is not there, or Java has written to the file since."""
    if len(raw) < _END:
        return None
    name, replay_from = _OURS.unpack_from(raw, _OURS_AT)
    (crc,) = _CRC.unpack_from(raw, _OURS_AT + _OURS.size)
    if name != _NAME or crc != _crc(raw) or replay_from < 0:
        return None
    (flushed,) = _FLUSHED.unpack_from(raw, _FLUSHED_AT)
    (crc,) = _CRC.unpack_from(raw, _FLUSHED_AT + _FLUSHED.size)
    if crc != _flushed_crc(raw) or flushed < replay_from:
        flushed = replay_from  # an older version wrote it: up to there the log is on the disk
    return CheckpointFields(replay_from, flushed)


def confirmed_in(raw: bytes | memoryview) -> int:
    """The confirmed offset in the file; 0 if it is not there."""
    return int(_JAVA.unpack_from(raw)[4]) if len(raw) >= _JAVA.size else 0


def _crc(raw: bytes | memoryview) -> int:
    return crc32(raw[_OURS_AT : _OURS_AT + _OURS.size], crc32(raw[: _JAVA.size]))


def _flushed_crc(raw: bytes | memoryview) -> int:
    return crc32(raw[_FLUSHED_AT : _FLUSHED_AT + _FLUSHED.size], _crc(raw))


class Checkpoint:
    """The numbers of the file; `save` writes them.

    Attributes:
        log_ms, queues_ms, index_ms: store times of the last records that are on the disk in each.
        replay_from: log offset from which the views must be replayed; None if not known.
        flushed: log offset up to which the log is on the disk; None if not known.
        confirmed: log offset up to which all of the in-sync set had the log when it was saved; it
            may be more since, and the log may be shorter. Not used without an elector.
    """

    __slots__ = (
        "_disk", "_file", "_master_offset", "_path", "confirmed", "flushed", "index_ms",
        "log_ms", "queues_ms", "replay_from",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._file: MappedFile | None = None
        self.log_ms = self.queues_ms = self.index_ms = 0
        self._master_offset = self.confirmed = 0
        self.replay_from: int | None = None
        self.flushed: int | None = None

    def load(self) -> None:
        """Opens and reads the file, which is made if it is missing or has another size.

        Raises:
            OSError: the disk refuses it.
        """
        if self._disk.size(self._path) not in (None, FILE_BYTES):
            self._disk.remove(self._path)
        self._file = self._disk.map(self._path, FILE_BYTES)
        self._file.reserve(0, FILE_BYTES)
        raw = self._file.buffer
        (
            self.log_ms, self.queues_ms, self.index_ms, self._master_offset, self.confirmed
        ) = _JAVA.unpack_from(raw)  # fmt: skip
        marks = marks_in(raw)
        self.replay_from = marks and marks.replay_from
        self.flushed = marks and marks.flushed

    @property
    def safe_ms(self) -> int:
        """Records stored up to here are on the disk with their queue entries."""
        safe_ms: int = min(self.safe_log_ms, self.queues_ms - SAFETY_MS)
        return max(safe_ms, 0)

    @property
    def safe_log_ms(self) -> int:
        """Records stored up to here are on the disk."""
        safe_ms: int = self.log_ms - SAFETY_MS
        return max(safe_ms, 0)

    async def save(self) -> None:
        """Returns when the numbers are on the disk.

        Raises:
            OSError: the disk failed.
        """
        assert self._file is not None, "it is loaded before it is saved"
        raw = self._file.buffer
        _JAVA.pack_into(
            raw,
            0,
            self.log_ms,
            self.queues_ms,
            self.index_ms,
            self._master_offset,
            self.confirmed,
        )
        _OURS.pack_into(raw, _OURS_AT, _NAME, -1 if self.replay_from is None else self.replay_from)
        _CRC.pack_into(raw, _OURS_AT + _OURS.size, _crc(raw))
        _FLUSHED.pack_into(raw, _FLUSHED_AT, -1 if self.flushed is None else self.flushed)
        _CRC.pack_into(raw, _FLUSHED_AT + _FLUSHED.size, _flushed_crc(raw))
        await self._file.sync(0, _END)

    def bound_confirmed(self, log_start: int, log_end: int) -> int:
        """The confirmed offset, after it is brought into the log that was found: what is deleted
        was confirmed, and what comes instead of a lost end is not."""
        self.confirmed = max(min(self.confirmed, log_end), log_start)
        return self.confirmed

    async def save_for_replay(self, log_start: int) -> None:
        """Has the next start replay the whole log, which begins at a log offset.

        Raises:
            OSError: the disk failed.
        """
        self.replay_from = log_start
        self.flushed = max(self.flushed or 0, log_start)
        await self.save()

    async def save_for_cut(self, end: int, *, synced: int) -> None:
        """Has nothing on the disk from the log offset `end` on.

        Args:
            synced: up to where log and views are on the disk, if that is not known here.

        Raises:
            OSError: the disk failed.
        """
        self.replay_from = min(synced if self.replay_from is None else self.replay_from, end)
        self.flushed = max(min(self.flushed or 0, end), self.replay_from)
        self.confirmed = min(self.confirmed, end)
        await self.save()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
