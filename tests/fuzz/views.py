"""Targets about the views of a store, each file by itself. As in `targets`."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from itertools import islice

from sprocket.base.errors import OffsetOutOfRange
from sprocket.store.log.segments import Segments
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.batch_unit import UNIT, UNIT_BYTES
from sprocket.store.views.consume_queue import ENTRY
from sprocket.testing.disk import MemoryDisk

_FOLDER = "/q"
_FILE_BYTES = 4 * UNIT_BYTES
_OFFSET_MAX = 1 << 62


def batch_units(data: bytes) -> None:
    """The files of a batch queue: cut where the log ends, asked for any offset, and written on.

    Eight bytes say where the log ends and which offset is asked for; the rest are the files.
    """
    if len(data) < 8 + UNIT_BYTES:
        return
    end, asked = struct.unpack(">Ii", data[:8])
    disk = MemoryDisk()
    disk.make_directory(_FOLDER)
    for at in range(8, min(len(data), 2_000), _FILE_BYTES):
        content = data[at : at + _FILE_BYTES].ljust(_FILE_BYTES, b"\0")
        disk.replace(f"{_FOLDER}/{at - 8:020d}", content, backup=False)
    files = Segments(disk, _FOLDER, _FILE_BYTES, setting="store.batch_queue_file_bytes")
    files.load()
    queue = BatchQueue(files, "t", 0, newest_ms=lambda: 1, stored_ms_at=lambda offset: 1)
    newest = queue.cut(end, is_torn=bool(asked & 1))
    assert newest < end
    for offset in (asked, queue.min_offset, queue.max_offset - 1, queue.max_offset):
        with contextlib.suppress(OffsetOutOfRange):
            assert len(list(islice(queue.units(offset), 100))) <= len(data) // UNIT_BYTES + 1
            queue.entries(offset, 3)
        with contextlib.suppress(OffsetOutOfRange):
            queue.next_unit_offset(offset, queue.max_offset)
        queue.has_unit(offset, newest)
        queue.next_file_offset(offset)
        queue.end_before(offset)
    queue.first_offset_where(lambda log_offset, size: log_offset >= asked)
    if 0 <= queue.max_offset < _OFFSET_MAX:
        began = queue.max_offset
        queue.hold_next(3)
        queue.add(ENTRY.pack(end, 100, 0), end)
        assert queue.max_offset == began + 3


def _units() -> list[bytes]:
    good = b"".join(
        UNIT.pack(100 * number, 100, 7, 1_000 + number, 2 * number, 2, -1, 0) for number in range(9)
    )
    return [struct.pack(">Ii", end, asked) + good for end, asked in ((900, 5), (450, 17), (0, -1))]


VIEWS = (batch_units,)
VIEW_SEEDS: dict[str, Callable[[], list[bytes]]] = {"batch_units": _units}
