"""Up to where log and views are on the disk: the file `checkpoint`, 4096 bytes.

    at  bytes  what
     0    8    time of the last record that is on the disk, ms
     8    8    time of the last record whose consume queue entry is, ms
    16    8    time of the last record whose index entries are, ms
    24    8    log offset that a master has flushed
    32    8    log offset confirmed by replicas
    64    8    "SPROCKET"
    72    8    log offset from which recovery must replay the views
    80    4    CRC-32 of bytes 0 to 40 and 64 to 80
    88    8    log offset up to which the log is on the disk
    96    4    CRC-32 of bytes 0 to 40, 64 to 80 and 88 to 96

Java reads and writes the first five numbers only. Ours are valid while those are what they were, so
a store that Java has used in between is recovered by their times.

Source: StoreCheckpoint of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from zlib import crc32

from sprocket.base.ports import Disk

FILE_BYTES = 4096

_JAVA = struct.Struct(">qqqqq")
_OURS = struct.Struct(">8sq")
_CRC = struct.Struct(">I")
_OURS_AT = 64
_NAME = b"SPROCKET"
_FLUSHED = struct.Struct(">q")
_FLUSHED_AT = 88
_END = _FLUSHED_AT + _FLUSHED.size + _CRC.size

#: Java trusts its times less this much.
_SAFETY_MS = 3000


class Checkpoint:
    """The numbers of the file; `save` writes them.

    Attributes:
        log_ms, queues_ms, index_ms: times of the last records that are safe in each.
        replay_from: log offset from which the views must be replayed; None if not known.
        flushed: log offset up to which the log is on the disk; None if not known.
    """

    __slots__ = (
        "_confirmed_offset", "_file", "_master_offset", "flushed", "index_ms", "log_ms",
        "queues_ms", "replay_from",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str) -> None:
        """Opens the file, made if it is missing or has another size.

        Raises:
            OSError: the disk refuses it.
        """
        if disk.size(path) not in (None, FILE_BYTES):
            disk.remove(path)
        self._file = disk.map(path, FILE_BYTES)
        self._file.reserve(0, FILE_BYTES)
        raw = self._file.buffer
        (
            self.log_ms, self.queues_ms, self.index_ms, self._master_offset, self._confirmed_offset
        ) = _JAVA.unpack_from(raw)  # fmt: skip
        name, replay_from = _OURS.unpack_from(raw, _OURS_AT)
        (crc,) = _CRC.unpack_from(raw, _OURS_AT + _OURS.size)
        is_ours = name == _NAME and crc == self._crc() and replay_from >= 0
        self.replay_from: int | None = replay_from if is_ours else None
        (flushed,) = _FLUSHED.unpack_from(raw, _FLUSHED_AT)
        (crc,) = _CRC.unpack_from(raw, _FLUSHED_AT + _FLUSHED.size)
        is_known = is_ours and crc == self._flushed_crc() and flushed >= replay_from
        #: Written by an older version: what was in the views was on the disk.
        self.flushed: int | None = flushed if is_known else self.replay_from

    @property
    def safe_ms(self) -> int:
        """Records stored up to here are on the disk with their queue entries."""
        safe_ms: int = min(self.safe_log_ms, self.queues_ms - _SAFETY_MS)
        return max(safe_ms, 0)

    @property
    def safe_log_ms(self) -> int:
        """Records stored up to here are on the disk."""
        safe_ms: int = self.log_ms - _SAFETY_MS
        return max(safe_ms, 0)

    async def save(self) -> None:
        """Returns when the numbers are on the disk.

        Raises:
            OSError: the disk failed.
        """
        raw = self._file.buffer
        _JAVA.pack_into(
            raw,
            0,
            self.log_ms,
            self.queues_ms,
            self.index_ms,
            self._master_offset,
            self._confirmed_offset,
        )
        _OURS.pack_into(raw, _OURS_AT, _NAME, -1 if self.replay_from is None else self.replay_from)
        _CRC.pack_into(raw, _OURS_AT + _OURS.size, self._crc())
        _FLUSHED.pack_into(raw, _FLUSHED_AT, -1 if self.flushed is None else self.flushed)
        _CRC.pack_into(raw, _FLUSHED_AT + _FLUSHED.size, self._flushed_crc())
        await self._file.sync(0, _END)

    def _crc(self) -> int:
        raw = self._file.buffer
        return crc32(raw[_OURS_AT : _OURS_AT + _OURS.size], crc32(raw[: _JAVA.size]))

    def _flushed_crc(self) -> int:
        return crc32(self._file.buffer[_FLUSHED_AT : _FLUSHED_AT + _FLUSHED.size], self._crc())

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()
