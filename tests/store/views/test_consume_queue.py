"""One queue's entries."""

from __future__ import annotations

import pytest

from sprocket.base.errors import OffsetOutOfRange
from sprocket.store.log.segments import Segments
from sprocket.store.views.consume_queue import ENTRY, ConsumeQueue
from sprocket.store.views.record_batch import QueueColumns
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.support import run


def files(disk: MemoryDisk) -> Segments:
    found = Segments(disk, "/q/t/0", 160, setting="mappedFileSizeConsumeQueue")
    found.load()
    return found


def a_queue(disk: MemoryDisk | None = None) -> ConsumeQueue:
    queue = ConsumeQueue(files(disk or MemoryDisk()), "t", 0)
    queue.cut(1 << 40, is_torn=False)
    queue.set_log_start(0)
    return queue


Row = tuple[int, int, int, int]


def entry(offset: int, log_offset: int | None = None, size: int = 100, tag_code: int = 7) -> Row:
    return offset, offset * 100 if log_offset is None else log_offset, size, tag_code


def apply(queue: ConsumeQueue, *entries: Row) -> None:
    queue.apply_columns(QueueColumns(*map(list, zip(*entries, strict=True))))


def fill(queue: ConsumeQueue, count: int, start: int = 0) -> ConsumeQueue:
    for offset in range(start, start + count):
        apply(queue, entry(offset))
    return queue


def test_an_entry_is_twenty_bytes_of_java() -> None:
    disk = MemoryDisk()
    apply(a_queue(disk), entry(0, 0x1122334455667788, 0x01020304, -2))
    raw = disk.read(f"/q/t/0/{0:020d}")
    assert raw is not None
    assert raw[:20].hex() == "1122334455667788" + "01020304" + "fffffffffffffffe"
    assert not any(raw[20:])


def test_entries_are_found_over_all_files_and_after_a_restart() -> None:
    disk = MemoryDisk()
    fill(a_queue(disk), 20)
    queue = a_queue(disk)
    assert (queue.min_offset, queue.max_offset) == (0, 20)
    assert [queue.position(n) for n in (0, 7, 8, 19)] == [(n * 100, 100) for n in (0, 7, 8, 19)]
    fill(queue, 5, start=20)
    assert a_queue(disk).max_offset == 25


def test_a_file_that_is_exactly_full_is_no_obstacle() -> None:
    disk = MemoryDisk()
    fill(a_queue(disk), 8)
    queue = a_queue(disk)
    assert queue.max_offset == 8
    fill(queue, 1, start=8)
    assert queue.position(8) == (800, 100)


def test_entries_come_from_one_file_at_a_time() -> None:
    queue = fill(a_queue(), 20)
    assert len(queue.entries(6, 10)) == 2 * 20
    assert len(queue.entries(16, 10)) == 4 * 20
    assert [e[0] for e in ENTRY.iter_unpack(queue.entries(8, 3))] == [800, 900, 1000]
    assert queue.next_file_offset(6) == 8
    with pytest.raises(OffsetOutOfRange):
        queue.entries(24, 1)


@pytest.mark.parametrize("is_torn", [False, True])
def test_cutting_forgets_records_from_a_log_offset_on(is_torn: bool) -> None:
    disk = MemoryDisk()
    queue = fill(a_queue(disk), 20)
    assert queue.cut(950, is_torn=is_torn) == 900
    assert queue.max_offset == 10
    run(queue.sync())
    assert a_queue(disk).max_offset == 10
    assert len(disk.names("/q/t/0")) == 2
    assert queue.cut(0, is_torn=is_torn) == -1
    assert queue.max_offset == 0


def test_a_first_file_that_never_reached_the_disk_takes_the_next_with_it() -> None:
    disk = MemoryDisk()
    fill(a_queue(disk), 20)
    disk.remove(f"/q/t/0/{0:020d}")
    queue = ConsumeQueue(files(disk), "t", 0)
    assert queue.cut(0, is_torn=True) == -1
    assert (queue.max_offset, queue.has_files) == (0, False)


def test_a_torn_tail_is_cleared_behind_holes_too() -> None:
    disk = MemoryDisk()
    queue = fill(a_queue(disk), 8)
    raw = disk.map(f"/q/t/0/{0:020d}", 160).buffer
    raw[60:80] = bytes(20)
    queue.cut(300, is_torn=True)
    assert queue.max_offset == 3
    assert queue.unsynced_log_offset == 300, "recovery would cut it there again"
    run(queue.sync())
    assert not any(bytes(raw[60:]))


def test_a_queue_that_begins_late_is_filled_with_blanks_before() -> None:
    disk = MemoryDisk()
    queue = fill(a_queue(disk), 3, start=11)
    assert (queue.min_offset, queue.max_offset) == (11, 14)
    raw = disk.read(f"/q/t/0/{160:020d}")
    assert raw is not None
    assert raw[:60] == ENTRY.pack(0, 0x7FFFFFFF, 0) * 3
    again = a_queue(disk)
    assert (again.min_offset, again.max_offset) == (11, 14)


def test_a_gap_is_filled_with_blanks_that_keep_the_order() -> None:
    disk = MemoryDisk()
    queue = fill(a_queue(disk), 2)
    apply(queue, entry(10))
    assert queue.max_offset == 11
    assert queue.position(5) == (1000, 0x7FFFFFFF)
    again = a_queue(disk)
    assert (again.min_offset, again.max_offset) == (0, 11)
    assert again.position(10) == (1000, 100)


def test_a_topic_made_again_begins_anew_in_a_replay() -> None:
    queue = fill(a_queue(), 20)
    apply(queue, entry(0, 5000))
    apply(queue, entry(1, 5100))
    assert queue.max_offset == 2
    assert [queue.position(n)[0] for n in (0, 1)] == [5000, 5100]


def test_the_minimum_follows_the_start_of_the_log() -> None:
    queue = fill(a_queue(), 20)
    for log_start, expected in ((0, 0), (1, 1), (500, 5), (1900, 19), (1901, 20), (9999, 20)):
        queue.set_log_start(log_start)
        assert queue.min_offset == expected


def test_only_what_is_unsynced_asks_for_a_sync() -> None:
    disk = FaultyDisk(seed=1)
    queue = fill(a_queue(disk), 3)
    assert (queue.unsynced_log_offset, queue.unsynced_bytes) == (0, 60)
    run(queue.sync())
    assert queue.unsynced_log_offset == -1
    fill(queue, 1, start=3)
    assert (queue.unsynced_log_offset, queue.unsynced_bytes) == (300, 20)
    run(queue.sync())
    later = ConsumeQueue(files(disk.after_power_loss()), "t", 0)
    later.cut(1 << 40, is_torn=True)
    assert later.max_offset == 4


def test_clearing_reaches_the_disk_with_the_next_sync() -> None:
    disk = FaultyDisk(seed=1)
    queue = fill(a_queue(disk), 8)
    run(queue.sync())
    queue.cut(200, is_torn=True)
    assert queue.unsynced_log_offset == 200
    run(queue.sync())
    raw = disk.after_power_loss().read(f"/q/t/0/{0:020d}")
    assert raw is not None
    assert not any(raw[40:])


def test_a_resting_queue_goes_on_where_it_was() -> None:
    queue = fill(a_queue(), 5)
    queue.unmap_idle()
    assert queue.room_end == 0
    fill(queue, 5, start=5)
    queue.unmap_idle()
    assert queue.position(9) == (900, 100)
    assert len(queue.entries(0, 100)) == 160


def test_a_removed_queue_leaves_no_files() -> None:
    disk = MemoryDisk()
    queue = fill(a_queue(disk), 20)
    queue.remove()
    assert disk.names("/q/t/0") == []
    assert (queue.min_offset, queue.max_offset, queue.has_files) == (0, 0, False)


@pytest.mark.parametrize("first", [0, 3, 8])
@pytest.mark.parametrize("offsets", [range(1), range(5), range(30), [4, 5, 9, 10], [3, 4, 0, 1]])
def test_many_entries_are_written_as_they_are_one_by_one(first: int, offsets: list[int]) -> None:
    disks = MemoryDisk(), MemoryDisk()
    one, all_at_once = (fill(a_queue(disk), first) for disk in disks)
    entries = [entry(first + offset) for offset in offsets]
    for each in entries:
        apply(one, each)
    apply(all_at_once, *entries)
    assert all_at_once.max_offset == one.max_offset
    assert all_at_once.unsynced_log_offset == one.unsynced_log_offset
    fill(one, 10, start=one.max_offset)
    fill(all_at_once, 10, start=all_at_once.max_offset)
    names = disks[0].names("/q/t/0")
    assert disks[1].names("/q/t/0") == names
    for name in names:
        assert disks[0].read(f"/q/t/0/{name}") == disks[1].read(f"/q/t/0/{name}")
