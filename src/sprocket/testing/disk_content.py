"""The content of a simulated file: what a process sees, and what survives a loss of power."""

from __future__ import annotations

import mmap

from sprocket.testing.entropy import SeededEntropy

#: The unit that a disk writes as a whole or not at all.
SECTOR_BYTES = 512

_CHUNK = 1 << 16
_ZEROS = bytes(_CHUNK)


class SimulatedFile:
    """The content of a file that a process sees, and that which survives a loss of power."""

    __slots__ = ("cleared_from", "durable", "is_name_durable", "live", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        #: Bytes behind were cleared; the next sync makes that durable.
        self.cleared_from = size
        self.live = mmap.mmap(-1, max(size, 1))
        self.durable = mmap.mmap(-1, max(size, 1))
        #: False until its first sync: a loss of power may remove the whole file.
        self.is_name_durable = False

    @classmethod
    def holding(cls, content: bytes) -> SimulatedFile:
        """A file written at once and synced."""
        file = cls(len(content))
        file.live[: len(content)] = content
        file.sync(0, len(content))
        return file

    def content(self) -> bytes:
        return self.live[: self.size]

    def sync(self, start: int, end: int) -> None:
        clear(self.durable, self.cleared_from, self.size)
        self.cleared_from = self.size
        first = start - start % SECTOR_BYTES
        last = min(self.size, -(-end // SECTOR_BYTES) * SECTOR_BYTES)
        self.durable[first:last] = self.live[first:last]
        self.is_name_durable = True

    def copy(self) -> SimulatedFile:
        """A copy for the next process after a kill."""
        twin = SimulatedFile(self.size)
        copy_written(self.live, twin.live)
        copy_written(self.durable, twin.durable)
        twin.is_name_durable = self.is_name_durable
        twin.cleared_from = self.cleared_from
        return twin

    def torn(self, entropy: SeededEntropy) -> SimulatedFile | None:
        """A copy as after a loss of power; None if the file is gone."""
        if not self.is_name_durable and entropy.happens(0.5):
            return None
        twin = SimulatedFile(self.size)
        copy_written(self.durable, twin.live)
        for start in range(0, self.size, SECTOR_BYTES):
            end = min(start + SECTOR_BYTES, self.size)
            written = self.live[start:end]
            if written != self.durable[start:end] and entropy.happens(0.5):
                twin.live[start:end] = written
        twin.sync(0, self.size)
        return twin


def clear(memory: mmap.mmap, start: int, end: int) -> None:
    """Sets bytes to zero; writes only to chunks with other bytes, so that holes stay holes."""
    for first in range(start, end, _CHUNK):
        last = min(first + _CHUNK, end)
        if memory[first:last] != _ZEROS[: last - first]:
            memory[first:last] = _ZEROS[: last - first]


def copy_written(source: mmap.mmap, target: mmap.mmap) -> None:
    """Copies chunks that are not zero, so that files larger than memory stay sparse."""
    for start in range(0, len(source), _CHUNK):
        chunk = source[start : start + _CHUNK]
        if chunk != _ZEROS[: len(chunk)]:
            target[start : start + len(chunk)] = chunk
