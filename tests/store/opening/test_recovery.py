"""Opening after a stop, a kill, damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprocket.message.hosts import pack
from sprocket.message.record import Encoder, topic_part
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, messages, opened
from tests.support import run

QUEUES = 3


def body_of(n: int) -> bytes:
    return b"%d" % n * (n % 7)


async def filled(disk: MemoryDisk, count: int = 60) -> Store:
    store = await opened(disk, clock=ManualClock(1000))
    for n in range(count):
        store.append(a_draft(body_of(n), queue_number=n % QUEUES))
    return store


def check_first(store: Store, count: int) -> None:
    """The first `count` messages are there, each where it belongs, and no others."""
    for number in range(QUEUES):
        assert bodies(store, "orders", number) == [
            body_of(n) for n in range(count) if n % QUEUES == number
        ]


async def check_goes_on(store: Store, count: int) -> None:
    """The next messages follow without a gap, and all is there after another start."""
    for n in range(count, count + 30):
        place = store.append(a_draft(body_of(n), queue_number=n % QUEUES))
        assert place.queue_offset == n // QUEUES
    check_first(store, count + 30)
    disk = store._disk
    assert isinstance(disk, MemoryDisk)
    again = await opened(disk.after_kill())
    check_first(again, count + 30)


def log_file(disk: MemoryDisk, offset: int) -> memoryview:
    start = offset - offset % SMALL.log_file_bytes
    return disk.map(f"{ROOT}/commitlog/{start:020d}", SMALL.log_file_bytes).buffer


def test_a_stop_and_a_start_keep_everything() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        for count in range(60, 0, -20):
            store = await filled(disk, 0)
            for n in range(60 - count, 80 - count):
                store.append(a_draft(body_of(n), queue_number=n % QUEUES))
            end = store.log_end
            await store.close()
            assert disk.size(f"{ROOT}/abort") is None
            store = await opened(disk)
            assert store.log_end == store.flushed.value == end
            check_first(store, 80 - count)
            await store.close()

    run(check())


@pytest.mark.parametrize("count", [0, 1, 15, 16, 59, 60])
def test_a_kill_loses_nothing_that_was_written(count: int) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        await filled(disk, count)
        store = await opened(disk.after_kill())
        check_first(store, count)
        await check_goes_on(store, count)

    run(check())


def test_a_power_loss_keeps_what_was_synced() -> None:
    async def check(seed: int) -> None:
        disk = FaultyDisk(seed=seed)
        store = await filled(disk, 40)
        await store._flush.sync_log()
        if seed % 2:
            await store._flush.sync_views(is_thorough=True)
        for n in range(40, 70):
            store.append(a_draft(body_of(n), queue_number=n % QUEUES))
        later = await opened(disk.after_power_loss())
        kept = sum(int(later.max_offset("orders", n)) for n in range(QUEUES))
        assert kept >= 40
        check_first(later, kept)
        await check_goes_on(later, kept)

    for seed in range(20):
        run(check(seed))


def last_record(store: Store) -> tuple[int, int]:
    last = max(
        (m.log_offset, m.record_bytes) for n in range(QUEUES) for m in messages(store, "orders", n)
    )
    return int(last[0]), int(last[0]) + last[1]


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_a_torn_tail_is_cut_at_the_last_whole_record(stop: bool) -> None:
    """The last record is cut at every byte; what was acknowledged before it stays."""

    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        start, end = last_record(store)
        if stop:
            await store.close()
        for cut in range(start, end):
            damaged = disk.after_kill()
            log_file(damaged, start)[cut % 2048 : end % 2048] = bytes(end - cut)
            later = await opened(damaged)
            assert later.log_end == start, f"cut at byte {cut - start}"
            check_first(later, 59)
            place = later.append(a_draft(body_of(59), queue_number=59 % QUEUES))
            assert (place.log_offset, place.queue_offset) == (start, 59 // QUEUES)
            check_first(later, 60)

    run(check())


def no_properties(record: memoryview) -> None:
    record[-10:] = bytes(10)


def half_the_properties(record: memoryview) -> None:
    record[-4:] = bytes(4)


def flipped_body(record: memoryview) -> None:
    record[90] ^= 1


def other_place(record: memoryview) -> None:
    record[35] ^= 1


def longer_than_the_file(record: memoryview) -> None:
    record[0:4] = (1 << 30).to_bytes(4, "big")


def negative_size(record: memoryview) -> None:
    record[0:4] = b"\xff\xff\xff\xff"


def negative_body(record: memoryview) -> None:
    record[84:88] = b"\xff\xff\xff\xf0"


def other_magic(record: memoryview) -> None:
    record[4] ^= 1


def no_topic(record: memoryview) -> None:
    record[-18:-12] = bytes(6)


@pytest.mark.parametrize(
    "damage",
    [
        no_properties, half_the_properties, flipped_body, other_place, longer_than_the_file,
        negative_size, negative_body, other_magic, no_topic,
    ],
)  # fmt: skip
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_a_damaged_last_record_is_not_served(
    damage: Callable[[memoryview], None], stop: bool
) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        start, end = last_record(store)
        if stop:
            await store.close()
        damage(log_file(disk, start)[start % 2048 : end % 2048])
        later = await opened(disk.after_kill())
        assert later.log_end == start
        check_first(later, 59)
        await check_goes_on(later, 59)

    run(check())


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_old_records_in_the_rest_of_a_file_do_not_come_back(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        end = int(store.log_end)
        old = bytes(store.lookup(0))
        if stop:
            await store.close()
        rest = log_file(disk, end)[end % 2048 :]
        rest[:] = (old * 30)[: len(rest)]
        later = await opened(disk.after_kill())
        assert later.log_end == end
        check_first(later, 60)
        await check_goes_on(later, 60)

    run(check())


def test_a_record_behind_a_damaged_one_does_not_come_back_after_the_next_crash() -> None:
    """It is whole and in its own place, but its predecessor's place was given to another."""

    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        places = [store.append(a_draft(b"old %d" % n)) for n in range(3)]
        log_file(disk, 0)[places[1].log_offset + 90] ^= 1
        store = await opened(disk.after_kill())
        assert bodies(store) == [b"old 0"]
        assert store.append(a_draft(b"new 1")).end == places[1].end
        store = await opened(store._disk.after_kill())  # type: ignore[attr-defined]
        assert bodies(store) == [b"old 0", b"new 1"]

    run(check())


def test_messages_just_before_a_new_file_are_found_when_the_queues_lag() -> None:
    """The queues know nothing of the end of one file, and the next holds a single record."""

    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        await store._flush.sync_views(is_thorough=True)
        count = 0
        while store.log_end < SMALL.log_file_bytes:
            store.append(a_draft(b"%d" % count))
            count += 1
        later = disk.after_kill()
        for name in later.names(f"{ROOT}/consumequeue/orders/0"):
            later.remove(f"{ROOT}/consumequeue/orders/0/{name}")
        assert bodies(await opened(later)) == [b"%d" % n for n in range(count)]

    run(check())


def test_queues_ahead_of_the_log_are_cut_back() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        keep = next(m for m in messages(store, "orders", 30 % QUEUES) if m.body == body_of(30))
        end = keep.log_offset
        for start in range(end - end % 2048, int(store.log_end), 2048):
            first = max(end - start, 0)
            log_file(disk, start)[first:] = bytes(2048 - first)
        later = await opened(disk.after_kill())
        assert later.log_end == end
        check_first(later, 30)
        await check_goes_on(later, 30)

    run(check())


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_log_files_that_are_gone_take_their_entries_with_them(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk, 100)
        if stop:
            await store.close()
        names = disk.names(f"{ROOT}/commitlog")
        for name in names[-2:]:
            disk.remove(f"{ROOT}/commitlog/{name}")
        later = await opened(disk.after_kill())
        assert later.log_end == int(names[-2])
        kept = sum(int(later.max_offset("orders", n)) for n in range(QUEUES))
        check_first(later, kept)
        await check_goes_on(later, kept)

    run(check())


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_queues_that_are_gone_are_built_anew(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        if stop:
            await store.close()
        for number in range(QUEUES):
            directory = f"{ROOT}/consumequeue/orders/{number}"
            for name in disk.names(directory):
                disk.remove(f"{directory}/{name}")
        later = await opened(disk.after_kill())
        check_first(later, 60)
        await check_goes_on(later, 60)

    run(check())


def test_empty_next_files_left_by_a_crash_do_not_stop_the_start() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        after = int(store.log_end) // 2048 * 2048 + 2048
        disk.replace(f"{ROOT}/commitlog/{after:020d}", b"")
        disk.replace(f"{ROOT}/consumequeue/orders/0/{480:020d}", b"")
        later = await opened(disk.after_kill())
        check_first(later, 60)
        await check_goes_on(later, 60)

    run(check())


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_a_store_without_our_marks_is_recovered_by_javas_times(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        if stop:
            await store.close()
        raw = bytearray(disk.read(f"{ROOT}/checkpoint") or b"")
        raw[64:96] = bytes(32)
        disk.replace(f"{ROOT}/checkpoint", bytes(raw))
        later = await opened(disk.after_kill())
        check_first(later, 60)
        await check_goes_on(later, 60)

    run(check())


def test_a_stopped_store_whose_tail_was_zeroed_is_cut_there() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store.close()
        log_file(disk, 4096)[1000:] = bytes(2048 - 1000)
        for start in range(6144, 20_000, 2048):
            disk.remove(f"{ROOT}/commitlog/{start:020d}")
        later = await opened(disk.after_kill())
        kept = sum(int(later.max_offset("orders", n)) for n in range(QUEUES))
        assert 4096 < later.log_end <= 5096
        check_first(later, kept)
        await check_goes_on(later, kept)

    run(check())


def test_a_deleted_topic_stays_deleted_when_it_is_made_again() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(20):
            store.append(a_draft(b"old %d" % n))
        store.delete_topic("orders")
        store.append(a_draft(b"new"))
        assert bodies(store) == [b"new"]
        assert bodies(await opened(disk.after_kill())) == [b"new"]

    run(check())


def test_a_queue_whose_first_messages_expired_is_rebuilt_from_where_it_begins() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(100):
            store.append(a_draft(b"%d" % n))
        await store.close()
        for start in (0, 2048):
            disk.remove(f"{ROOT}/commitlog/{start:020d}")
        for name in disk.names(f"{ROOT}/consumequeue/orders/0"):
            disk.remove(f"{ROOT}/consumequeue/orders/0/{name}")
        later = await opened(disk)
        low = later.min_offset("orders", 0)
        assert 0 < low < 100
        assert bodies(later) == [b"%d" % n for n in range(low, 100)]

    run(check())


def test_checking_bodies_can_be_left_out() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        places = [store.append(a_draft(b"%d" % n)) for n in range(3)]
        log_file(disk, 0)[places[1].log_offset + 88] ^= 1
        config = StoreConfig(log_file_bytes=2048, queue_file_bytes=160, check_bodies=False)
        later = await opened(disk.after_kill(), config=config)
        assert len(bodies(later)) == 3

    run(check())


def test_records_of_ipv6_hosts_are_recovered() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(30):
            store.append(a_draft(b"%d" % n, born_host=pack("[2001:db8::1]:7")))
        assert bodies(await opened(disk.after_kill())) == [b"%d" % n for n in range(30)]

    run(check())


def test_a_record_that_another_broker_wrote_is_whole_too() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        record = Encoder(pack("[::1]:10911")).encode(
            a_draft(b"from elsewhere", properties=b""),
            topic_part(b"orders"),
            log_offset=0,
            queue_offset=0,
            stored_ms=5,
        )
        store._log.ensure_space(len(record))
        store._log.buffer[: len(record)] = record
        later = await opened(disk.after_kill())
        assert bodies(later) == [b"from elsewhere"]
        assert later.log_end == len(record)

    run(check())


def test_what_a_crash_left_far_behind_the_end_is_gone_before_anything_is_appended() -> None:
    async def check() -> None:
        config = StoreConfig(log_file_bytes=40 << 20, index_slots=8, index_entries=32)
        disk = FaultyDisk()
        store = await opened(disk, config=config)
        for n in range(3):
            store.append(a_draft(body_of(n)))
        file = disk.map(f"{ROOT}/commitlog/{0:020d}", 40 << 20)
        file.buffer[39 << 20] = 1
        await file.sync(0, 40 << 20)
        disk = disk.after_kill()  # type: ignore[assignment]
        await opened(disk, config=config)
        disk = disk.after_power_loss()  # type: ignore[assignment]
        assert disk.map(f"{ROOT}/commitlog/{0:020d}", 40 << 20).buffer[39 << 20] == 0

    run(check())
