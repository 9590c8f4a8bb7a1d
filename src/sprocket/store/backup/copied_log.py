"""Finds out where a log ends that a broker may be writing, and copies parts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import Disk, FileBytes
from sprocket.store.inspection.walk import LogFiles, walk_entries
from sprocket.store.log.damage import Damage
from sprocket.store.log.segments import NAME_DIGITS

Advance = Callable[[int], None]

_CHUNK_BYTES = 4 << 20
#: What is no record after so many reads is damaged.
_READS = 3
_PAUSE_S = 0.05


class LogEnd(NamedTuple):
    """Where a log ends, and what is between a place and there.

    Attributes:
        end: log offset behind the last whole record.
        damaged: the parts that are no records.
    """

    end: int
    damaged: tuple[Damage, ...]


def files_from(log: LogFiles, begin: int) -> LogFiles:
    """The same log without the files that end at or before a log offset."""
    log.starts = [start for start in log.starts if start + log.file_bytes > begin]
    return log


async def find_end(log: LogFiles) -> LogEnd:
    """The end of a log that may grow meanwhile: everything stored before the call is before it.

    All records are compared with their checksums.

    Raises:
        OSError: the disk failed.
    """
    end, damaged = log.start, list[Damage]()
    for each in walk_entries(log):
        if isinstance(each, Damage):
            # A record that is just being written looks damaged, if later ones are whole already. It
            # was not there when this began, so the log may end before it.
            for _ in range(_READS):
                await asyncio.sleep(_PAUSE_S)
                if _is_whole_now(log, each):
                    return LogEnd(each.start, tuple(damaged))
            damaged.append(each)
        else:
            end = each.end
            await asyncio.sleep(0)
    return LogEnd(end, tuple(damaged))


def _is_whole_now(log: LogFiles, damage: Damage) -> bool:
    try:
        log.record_at(damage.start)
    except (CorruptRecord, OffsetOutOfRange):
        return False
    return True


class CopiedPart(NamedTuple):
    """What was copied of a log.

    Attributes:
        begin: where the copy begins: later than wanted if the first files were deleted meanwhile.
        checksums: of each file that was written: the CRC-32 from its beginning to the copy's end.
    """

    begin: int
    checksums: dict[str, int]


async def copy_log(
    log: LogFiles, begin: int, end: int, disk: Disk, folder: str, advance: Advance
) -> CopiedPart:
    """Copies bytes [begin, end) of a log into the same places of files in a folder.

    What the last file has behind `end` becomes zero. Bytes are on the disk when this returns.

    Raises:
        OffsetOutOfRange: a file behind the first copied one is gone.
        OSError: the disk failed or is full.
    """
    disk.make_directory(folder)
    size, first = log.file_bytes, begin
    checksums: dict[str, int] = {}
    for start in range(begin - begin % size if size else end, end, size or 1):
        at, until = max(begin - start, 0), min(end - start, size)
        try:
            source = log.file(start)
        except OffsetOutOfRange:
            if first < start:
                raise
            first = start + size
            advance(until - at)
            continue
        name = f"{start:0{NAME_DIGITS}d}"
        path = f"{folder}/{name}"
        if disk.size(path) not in (None, size):
            disk.remove(path)
        target = disk.map(path, size)
        try:
            target.reserve(at, until)
            for piece in range(at, until, _CHUNK_BYTES):
                behind = min(piece + _CHUNK_BYTES, until)
                target.buffer[piece:behind] = bytes(source[piece:behind])
                advance(behind - piece)
                await asyncio.sleep(0)
            if until < size:
                target.clear_from(until)
            await target.sync(at, size)
            checksums[name] = await checksum(target, until)
        finally:
            target.close()
    return CopiedPart(min(first, end), checksums)


async def checksum(file: FileBytes, until: int) -> int:
    """The CRC-32 of the first bytes of a file."""
    crc = 0
    for at in range(0, until, _CHUNK_BYTES):
        crc = crc32(file[at : min(at + _CHUNK_BYTES, until)], crc)
        await asyncio.sleep(0)
    return crc
