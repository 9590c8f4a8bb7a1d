"""What readers see while senders still wait for the disk."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sprocket.base.watermark import Watermark
from sprocket.store.reading.by_time import Boundary
from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.store.store import Store
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.consume_queue import ENTRY
from sprocket.store.views.entry import Entry
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

SYNCHRONOUS = replace(SMALL, flush="SYNC_FLUSH")


def a_store(disk: FaultyDisk | None = None, clock: ManualClock | None = None) -> Store:
    return run(opened(disk or FaultyDisk(1), clock=clock, config=SYNCHRONOUS))


def test_messages_that_are_not_on_the_disk_are_not_there_for_readers() -> None:
    store = a_store()
    store.append(a_draft(b"0"))
    run(store.sync())
    place = store.append(a_draft(b"1"))
    read = store.read("orders", 0, 0, count_max=9, bytes_max=9999)
    assert (read.count, read.next_offset, read.max_offset) == (1, 1, 1)
    read = store.read("orders", 0, 1, count_max=9, bytes_max=9999)
    assert (read.status, read.max_offset) == (ReadStatus.OFFSET_OVERFLOW_ONE, 1)
    assert store.max_offset("orders", 0) == store.arrivals("orders", 0).value == 1
    assert store.readable_end == place.log_offset < store.log_end
    assert store.time_of("orders", 0, 1) == -1
    run(store.sync())
    assert bodies(store) == [b"0", b"1"]
    assert store.max_offset("orders", 0) == store.arrivals("orders", 0).value == 2
    assert store.readable_end == store.log_end


def test_offsets_by_time_stop_at_what_readers_see() -> None:
    clock = ManualClock()
    store = a_store(clock=clock)
    for count in range(4):
        store.append(a_draft(b"%d" % count))
        clock.move(100)
        if count == 1:
            run(store.sync())
    begin = store.time_of("orders", 0, 0)
    assert store.offset_at_time("orders", 0, begin + 300) == 2
    assert store.offset_at_time("orders", 0, begin + 300, Boundary.UPPER) == 1
    assert store.offset_at_time("orders", 0, begin + 100) == 1


def test_a_queue_of_unsafe_messages_only_is_empty() -> None:
    store = a_store()
    store.append(a_draft())
    read = store.read("orders", 0, 0, count_max=9, bytes_max=9999)
    assert read.status is ReadStatus.NO_MESSAGE_IN_QUEUE


def test_a_batch_is_shown_when_it_is_safe() -> None:
    store = a_store()
    store.append_batch([a_draft(b"%d" % count) for count in range(5)])
    store.append(a_draft(sys_flag=0x4))
    assert store.max_offset("orders", 0) == 0
    run(store.sync())
    assert len(bodies(store)) == 5


def test_a_topic_deleted_and_made_again_begins_anew() -> None:
    store = a_store()
    store.append(a_draft(b"old"))
    store.append(a_draft(b"old"))
    store.delete_topic("orders")
    assert store.arrivals("orders", 0).value == 0
    store.append(a_draft(b"new"))
    assert store.max_offset("orders", 0) == 0
    run(store.sync())
    assert bodies(store) == [b"new"]
    assert store.arrivals("orders", 0).value == 1


def test_all_that_recovery_found_is_shown() -> None:
    disk = FaultyDisk(1)
    store = a_store(disk)
    for count in range(30):
        store.append(a_draft(b"%d" % count))
    again = run(opened(disk.after_kill(), config=SYNCHRONOUS))
    assert bodies(again) == [b"%d" % count for count in range(30)]


@pytest.mark.parametrize(("flushed", "copied", "shown"), [(3, 2, 2), (1, 3, 1), (3, 0, 0)])
def test_the_least_of_several_watermarks_counts(flushed: int, copied: int, shown: int) -> None:
    marks = [Watermark(), Watermark()]
    confirmed = ConfirmedOffsets(marks)
    store = a_store()
    queue = store._queues.make("orders", 0)
    for count in range(3):
        entry = Entry("orders", 0, count, count * 100, 100, 0, 0, 0)
        queue.add(ENTRY.pack(count * 100, 100, 0), count * 100)
        confirmed.apply_all([entry])
    arrivals = confirmed.arrivals(queue)
    for mark, records in zip(marks, (flushed, copied), strict=True):
        mark.rise(records * 100)
        confirmed.advance()
    assert confirmed.end_of(queue) == arrivals.value == shown
    assert confirmed.end == shown * 100


def test_many_hidden_records_of_few_queues_take_bounded_memory() -> None:
    flushed = Watermark()
    confirmed = ConfirmedOffsets([flushed])
    queues = [SimpleNamespace(topic="orders", number=n, max_offset=100_000) for n in range(3)]
    at = 0
    for start in range(0, 100_000, 1000):
        entries = [
            Entry("orders", n, offset, (offset * 3 + n) * 100, 100, 0, 0, 0)
            for offset in range(start, start + 1000)
            for n in range(3)
        ]
        confirmed.apply_all(entries)
        at = entries[-1].end
    assert len(confirmed._waiting) <= 1 << 17
    for end in range(0, at, at // 50):
        flushed.rise(end)
        confirmed.advance()
        for queue in queues:
            shown = confirmed.end_of(queue)  # type: ignore[arg-type]
            safe = max(0, end // 100 - queue.number + 2) // 3
            assert safe - 2_000 <= shown <= safe
    flushed.rise(at)
    confirmed.advance()
    assert {confirmed.end_of(queue) for queue in queues} == {100_000}  # type: ignore[arg-type]


async def _as_member(disk: FaultyDisk, *, safe: Watermark) -> Store:
    return await Store.open(
        disk=disk, clock=ManualClock(), root=ROOT, config=SMALL, store_host=HOST,
        tag_codes=TAGS_ONLY, safe=(safe,), is_member=True,
    )  # fmt: skip


def _filled(disk: FaultyDisk, *, confirmed: int, count: int = 40) -> list[int]:
    """Log offsets after messages in two queues, of which the first ones are confirmed."""
    safe = Watermark()
    store = run(_as_member(disk, safe=safe))
    ends = [store.append(a_draft(b"%d" % n, queue_number=n % 2)).end for n in range(count)]
    safe.rise(ends[confirmed - 1] if confirmed else 0)
    store.replica.confirm()
    run(store.close())
    return ends


@pytest.mark.parametrize("confirmed", [0, 1, 17, 18, 39, 40])
def test_a_member_shows_at_its_start_what_was_confirmed_when_it_stopped(confirmed: int) -> None:
    disk = FaultyDisk(1)
    ends = _filled(disk, confirmed=confirmed)
    safe = Watermark()
    store = run(_as_member(disk, safe=safe))
    assert store.readable_end == (ends[confirmed - 1] if confirmed else 0)
    for number in (0, 1):
        shown = (confirmed + 1 - number) // 2
        assert store.max_offset("orders", number) == shown
        assert store.stored.max_offset("orders", number) == 20
        read = store.read("orders", number, 20, count_max=9, bytes_max=9999)
        assert read.next_offset == 20, "whoever has read more elsewhere stays there"
        assert len(bodies(store, number=number)) == shown
    arrivals = store.arrivals("orders", 0)
    safe.rise(ends[-1])
    store.replica.confirm()
    assert arrivals.value == 20
    assert len(bodies(store)) == 20


def test_more_than_what_was_saved_is_shown_with_what_comes_later() -> None:
    disk = FaultyDisk(1)
    ends = _filled(disk, confirmed=10)
    safe = Watermark()
    store = run(_as_member(disk, safe=safe))
    end = store.append(a_draft(b"new")).end
    safe.rise(ends[20])
    store.replica.confirm()
    assert store.max_offset("orders", 0) == 5, "what was found is shown all at the same time"
    safe.rise(end)
    store.replica.confirm()
    assert store.max_offset("orders", 0) == 21


def test_a_log_that_lost_what_was_confirmed_does_not_vouch_for_what_comes_instead() -> None:
    disk = FaultyDisk(1)
    ends = _filled(disk, confirmed=40)
    cut = ends[29]
    store = run(
        Store.open(
            disk=disk, clock=ManualClock(), root=ROOT, config=SMALL, store_host=HOST,
            tag_codes=TAGS_ONLY, safe=(Watermark(),), is_member=True, cut_at=cut,
        )
    )  # fmt: skip
    assert store.readable_end == store.log_end == cut
    store.append(a_draft(b"other"))
    run(store.close())
    again = run(_as_member(disk, safe=Watermark()))
    assert again.readable_end == cut < again.log_end


def test_a_store_of_no_group_shows_all_and_keeps_the_number() -> None:
    disk = FaultyDisk(1)
    _filled(disk, confirmed=10)
    store = run(opened(disk))
    assert store.readable_end == store.log_end
    run(store.close())
    assert run(_as_member(disk, safe=Watermark())).readable_end < store.log_end
