"""The checkpoint of the timers: the file `config/timercheck`, 4096 bytes.

`docs/formats/timers.md` has the byte table, which a test compares with the structs below.

Java reads and writes only the first 56 bytes. Our fields are valid while those do not change.
Source: TimerCheckpoint of RocketMQ 5.3.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from sprocket.base.ports import Disk

FILE_BYTES = 4096
#: So many bytes are the reply to a request for the file.
JAVA_BYTES = 56

#: First slot that is not done, end of the timer log, next queue offset, the same of the master.
JAVA_PART = struct.Struct(">qqqq")
_VERSION = struct.Struct(">qqq")
_OURS = struct.Struct(">8sqqq")
_CRC = struct.Struct(">I")
_OURS_AT = 64
_NAME = b"SPROCKET"
_CLEAN, _REPLACED = 1, 2


class TimerProgress(NamedTuple):
    """The progress of the timers.

    Attributes:
        slot_ms: the first slot that is not done.
        position: the end of the timer log.
        queue_next: queue offset of the next message of the timer's topic.
        delivered_from: log offset behind which all messages delivered from the slot are.
        queue_then: `queue_next` when the slot became the current one.
        is_ours: whether the last two are known; Java does not write them.
        is_clean: whether it was saved by an orderly stop.
        has_replaced: whether messages are on the wheel whose rolled copies are in the topic.
    """

    slot_ms: int
    position: int
    queue_next: int
    delivered_from: int = 0
    queue_then: int = 0
    is_ours: bool = True
    is_clean: bool = False
    has_replaced: bool = False


class TimerCheck:
    """The file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def exists(self) -> bool:
        """Whether the file exists."""
        return self._disk.size(self._path) == FILE_BYTES

    def open(self) -> None:
        """Opens the file; creates it if it is missing or has another size.

        Raises:
            OSError: the disk refuses it.
        """
        if self._disk.size(self._path) not in (None, FILE_BYTES):
            self._disk.remove(self._path)
        self._disk.make_directory(self._path.rpartition("/")[0])
        self._file = self._disk.map(self._path, FILE_BYTES)
        self._file.reserve(0, FILE_BYTES)

    def read(self) -> TimerProgress | None:
        """The progress in the file; None if the file is empty or damaged."""
        raw = self._file.buffer
        slot_ms, position, queue_next, master_next = JAVA_PART.unpack_from(raw)
        name, delivered_from, queue_then, flags = _OURS.unpack_from(raw, _OURS_AT)
        (crc,) = _CRC.unpack_from(raw, _OURS_AT + _OURS.size)
        if min(slot_ms, position, queue_next, master_next) < 0 or not slot_ms:
            return None
        if name == _NAME and crc == self._crc():
            return TimerProgress(
                slot_ms,
                position,
                queue_next,
                delivered_from,
                queue_then,
                is_clean=bool(flags & _CLEAN),
                has_replaced=bool(flags & _REPLACED),
            )
        return TimerProgress(slot_ms, position, max(queue_next, master_next), is_ours=False)

    async def save(self, progress: TimerProgress, now_ms: int) -> None:
        """Returns when the progress is on the disk.

        Raises:
            OSError: the disk failed.
        """
        raw = self._file.buffer
        queue_next = progress.queue_next
        JAVA_PART.pack_into(raw, 0, progress.slot_ms, progress.position, queue_next, queue_next)
        _, _, counter = _VERSION.unpack_from(raw, JAVA_PART.size)
        _VERSION.pack_into(raw, JAVA_PART.size, 0, now_ms, max(counter, 0) + 1)
        _OURS.pack_into(
            raw,
            _OURS_AT,
            _NAME,
            progress.delivered_from,
            progress.queue_then,
            progress.is_clean * _CLEAN | progress.has_replaced * _REPLACED,
        )
        _CRC.pack_into(raw, _OURS_AT + _OURS.size, self._crc())
        await self._file.sync(0, _OURS_AT + _OURS.size + _CRC.size)

    def java_part(self) -> bytes:
        """The bytes that Java reads and writes."""
        return bytes(self._file.buffer[:JAVA_BYTES])

    def _crc(self) -> int:
        raw = self._file.buffer
        return crc32(raw[_OURS_AT : _OURS_AT + _OURS.size], crc32(raw[: JAVA_PART.size]))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
