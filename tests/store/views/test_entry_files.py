"""Files of entries, of both kinds of queue: room, what is unsynced, and failed disks."""

from __future__ import annotations

import pytest

from sprocket.base.errors import DiskFull
from sprocket.store.log.segments import Segments
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.consume_queue import ENTRY, ConsumeQueue
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.support import run

FOLDER = "/q/t/0"
PER_FILE = 4
KINDS = {"entries": 20, "units": 46}


def a_queue(kind: str, disk: MemoryDisk) -> ConsumeQueue:
    files = Segments(disk, FOLDER, KINDS[kind] * PER_FILE, setting="mappedFileSizeConsumeQueue")
    files.load()
    queue: ConsumeQueue
    if kind == "entries":
        queue = ConsumeQueue(files, "t", 0)
    else:
        queue = BatchQueue(files, "t", 0, newest_ms=lambda: 7, stored_ms_at=lambda _: 7)
    queue.cut(1 << 40, is_torn=False)
    queue.set_log_start(0)
    return queue


def add(queue: ConsumeQueue, count: int) -> None:
    for offset in range(queue.max_offset, queue.max_offset + count):
        queue.add(ENTRY.pack(offset * 100, 100, 0), offset * 100)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, PER_FILE, 3 * PER_FILE - 1])
def test_where_room_was_made_a_full_disk_stops_no_entry(kind: str, count: int) -> None:
    disk = FaultyDisk(seed=1)
    queue = a_queue(kind, disk)
    add(queue, 2)
    queue.make_room(count)
    files = len(disk.names(FOLDER))
    assert files == (2 + count - 1) // PER_FILE + 1
    disk.capacity_bytes = 1
    add(queue, count)
    assert queue.max_offset == 2 + count
    with pytest.raises(DiskFull):
        queue.make_room(PER_FILE)
    assert [queue.position(offset)[0] for offset in range(2 + count)] == [
        offset * 100 for offset in range(2 + count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_failed_sync_left_is_still_unsynced(kind: str) -> None:
    disk = FaultyDisk(seed=1)
    queue = a_queue(kind, disk)
    add(queue, 2)
    run(queue.sync())
    assert (queue.unsynced_log_offset, queue.unsynced_bytes) == (-1, 0)
    add(queue, 2)
    disk.fail("sync")
    with pytest.raises(OSError, match="Input/output error"):
        run(queue.sync())
    assert (queue.unsynced_log_offset, queue.unsynced_bytes) == (200, 2 * KINDS[kind])
    run(queue.sync())
    assert a_queue(kind, disk.after_power_loss()).max_offset == 4


@pytest.mark.parametrize("kind", KINDS)
def test_old_bytes_behind_the_end_never_come_back(kind: str) -> None:
    disk = FaultyDisk(seed=1)
    queue = a_queue(kind, disk)
    add(queue, PER_FILE + 2)
    run(queue.sync())
    queue.cut(100, is_torn=True)
    assert queue.unsynced_log_offset == 100
    run(queue.sync())
    after = a_queue(kind, disk.after_power_loss())
    assert (after.max_offset, len(disk.names(FOLDER))) == (1, 1)
