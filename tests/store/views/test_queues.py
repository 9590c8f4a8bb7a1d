"""All queues of a store."""

from __future__ import annotations

import pytest

from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.views.entry import Entry
from sprocket.store.views.queues import MAPPED_QUEUES_MIN, ConsumeQueues
from sprocket.store.views.record_batch import RecordBatch
from sprocket.testing.disk import MemoryDisk
from tests.support import run


def all_queues(disk: MemoryDisk) -> ConsumeQueues:
    queues = ConsumeQueues(disk, "/cq", 160)
    queues.load()
    queues.cut(1 << 40, is_torn=False)
    list(queues.trim(0))
    return queues


def entry(topic: str, number: int, offset: int, log_offset: int, sys_flag: int = 0) -> Entry:
    return Entry(topic, number, offset, log_offset, 100, 0, 0, sys_flag)


def apply(queues: ConsumeQueues, entry: Entry) -> None:
    stretch = RecordBatch()
    stretch.add(entry)
    queues.apply_batch(stretch)


def test_each_queue_has_its_folder_and_is_found_again() -> None:
    disk = MemoryDisk()
    queues = all_queues(disk)
    apply(queues, entry("a", 0, 0, 0))
    apply(queues, entry("a", 3, 0, 100))
    apply(queues, entry("%RETRY%g", 0, 0, 200))
    assert disk.names("/cq") == ["%RETRY%g", "a"]
    assert disk.names("/cq/a") == ["0", "3"]
    again = all_queues(disk)
    assert {key: queue.max_offset for key, queue in again.by_name.items()} == {
        ("a", 0): 1, ("a", 3): 1, ("%RETRY%g", 0): 1,
    }  # fmt: skip


def test_folders_that_are_no_queues_are_left_alone() -> None:
    disk = MemoryDisk()
    disk.make_directory("/cq/a/x1")
    disk.make_directory("/cq/lost+found")
    assert all_queues(disk).by_name == {}


@pytest.mark.parametrize("sys_flag", [0x4, 0xC])
def test_prepared_and_rolled_back_records_are_in_no_queue(sys_flag: int) -> None:
    queues = all_queues(MemoryDisk())
    apply(queues, entry("a", 0, 0, 0, sys_flag))
    assert queues.by_name == {}
    apply(queues, entry("a", 0, 0, 100, 0x8))
    assert queues.by_name["a", 0].max_offset == 1


def test_cutting_tells_the_newest_record_that_is_still_known() -> None:
    queues = all_queues(MemoryDisk())
    for n in range(6):
        apply(queues, entry("a", n % 2, n // 2, n * 100))
    assert queues.cut(450, is_torn=True) == 400
    assert [queues.by_name["a", n].max_offset for n in (0, 1)] == [3, 2]
    assert queues.cut(0, is_torn=True) == -1


def test_a_pass_that_is_not_thorough_leaves_small_queues_for_later() -> None:
    queues = all_queues(MemoryDisk())
    for n in range(500):
        apply(queues, entry("large", 0, n, n * 100))
    apply(queues, entry("small", 0, 0, 50_000))
    assert queues.unsynced_log_offset == 0
    run(queues.sync(is_thorough=False))
    assert queues.unsynced_log_offset == 50_000
    run(queues.sync())
    assert queues.unsynced_log_offset == -1


def test_removing_a_topic_leaves_the_others() -> None:
    disk = MemoryDisk()
    queues = all_queues(disk)
    apply(queues, entry("a", 0, 0, 0))
    apply(queues, entry("b", 0, 0, 100))
    queues.remove("a")
    queues.remove("never")
    assert list(queues.by_name) == [("b", 0)]
    assert all_queues(disk).by_name["b", 0].max_offset == 1


@pytest.mark.parametrize(
    ("topic", "number"),
    [("", 0), (".", 0), ("..", 0), ("a/b", 0), ("a\\b", 0), ("a\0", 0), ("a", -1), ("t" * 256, 0)],
)
def test_names_that_lead_elsewhere_are_refused(topic: str, number: int) -> None:
    with pytest.raises(IllegalDraft):
        all_queues(MemoryDisk()).make(topic, number)


def test_unused_queues_are_unmapped_and_come_back() -> None:
    queues = all_queues(MemoryDisk())
    apply(queues, entry("a", 0, 0, 0))
    queue = queues.by_name["a", 0]
    queues.unmap_idle()
    assert queue.room_end > queue.max_offset, "what is unsynced stays"
    run(queues.sync())
    for _ in range(2):
        queues.unmap_idle()
    assert not queue.room_end > queue.max_offset
    assert queue.position(0) == (0, 100)


def test_a_process_that_may_open_many_files_keeps_more_queues_mapped() -> None:
    disk = MemoryDisk()
    disk.open_files_max = 16 * 400
    queues = all_queues(disk)
    for offset in range(3):
        for number in range(400):
            apply(queues, entry("a", number, offset, (offset * 1000 + number) * 100))
    assert len(queues._mapped) == 400


def test_a_bounded_number_of_queues_stays_mapped() -> None:
    disk = MemoryDisk()
    queues = all_queues(disk)
    for offset in range(3):
        for number in range(MAPPED_QUEUES_MIN + 50):
            apply(queues, entry("a", number, offset, (offset * 1000 + number) * 100))
            assert len(queues._mapped) <= MAPPED_QUEUES_MIN + 1
        mapped = [q for q in queues.by_name.values() if q.room_end > q.max_offset]
        assert len(mapped) <= MAPPED_QUEUES_MIN + 1
    assert {queue.max_offset for queue in queues.by_name.values()} == {3}
    run(queues.sync())
    assert {q.max_offset for q in all_queues(disk).by_name.values()} == {3}
