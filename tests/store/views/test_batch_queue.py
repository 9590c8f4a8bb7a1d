"""Queues whose units are batches: offsets, reads, recovery, and what is removed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from sprocket.store.reading.by_time import Boundary
from sprocket.store.reading.queue_reader import ReadFilter, ReadStatus
from sprocket.store.store import Store
from sprocket.store.views.batch_unit import UNIT, BatchUnit, units_in
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.batches import CONFIG, TOPIC, disk_with_topic, everything, numbered, put
from tests.store.making import ROOT, opened

PACKS = [(b"a",), (b"b", b"c", b"d"), (b"e", b"f"), (b"g",), (b"h", b"i", b"j", b"k"), (b"l",)]
ALL = list(enumerate(body for pack in PACKS for body in pack))
FOLDER = f"{ROOT}/batchconsumequeue/{TOPIC}/0"


async def filled(disk: MemoryDisk, clock: ManualClock | None = None) -> Store:
    store = await opened(disk, config=CONFIG, clock=clock)
    for pack in PACKS:
        put(store, *pack)
        if clock is not None:
            clock.move(1000)
    return store


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not seen():  # noqa: ASYNC110 - the store's own tasks run meanwhile
            await asyncio.sleep(0.01)


def units(disk: MemoryDisk) -> list[tuple[int, int]]:
    """First offset and number of messages of each unit in the files."""
    return [
        (unit.first_offset, unit.messages)
        for name in disk.names(FOLDER)
        for unit in units_in(disk.peek(f"{FOLDER}/{name}")[:])
    ]


def test_offsets_count_messages_and_each_comes_once() -> None:
    async def story() -> None:
        disk = disk_with_topic()
        store = await filled(disk)
        assert numbered(store) == ALL
        assert store.max_offset(TOPIC, 0) == 12
        assert disk.names(f"{ROOT}/consumequeue") == []
        for start in range(12):
            assert [each.queue_offset for each in everything(store, start=start)] == [
                *range(start, 12)
            ]
        await store.close()
        assert units(disk) == [(0, 1), (1, 3), (4, 2), (6, 1), (7, 4), (11, 1)]
        assert disk.names(FOLDER) == [f"{0:020d}", f"{4 * 46:020d}"]

    asyncio.run(story())


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    async def story() -> None:
        store = await filled(disk_with_topic())
        read = store.read(TOPIC, 0, 2, count_max=1, bytes_max=1 << 20)
        (record,) = read.records()
        assert (record.queue_offset, read.next_offset, read.count) == (1, 4, 3)
        assert store.read(TOPIC, 0, 1, count_max=4, bytes_max=1 << 20).next_offset == 4
        assert store.read(TOPIC, 0, 1, count_max=5, bytes_max=1 << 20).next_offset == 6
        assert store.read(TOPIC, 0, 12, count_max=5, bytes_max=1).status is (
            ReadStatus.OFFSET_OVERFLOW_ONE
        )

    asyncio.run(story())


def test_tags_choose_among_messages_and_batches_go_to_all_who_choose() -> None:
    async def story() -> None:
        store = await filled(disk_with_topic())
        read = store.read(
            TOPIC, 0, 0, count_max=99, bytes_max=1 << 20,
            wants=ReadFilter(by_code=lambda code: False),
        )  # fmt: skip
        assert [each.queue_offset for each in read.records()] == [1, 4, 7]

    asyncio.run(story())


def test_properties_choose_a_batch_by_any_of_its_messages() -> None:
    async def story() -> None:
        store = await opened(disk_with_topic(), config=CONFIG)
        put(store, b"a", b"b", tag="red")
        put(store, b"c", b"d", tag="blue")
        put(store, b"e")
        wants = ReadFilter(by_properties=lambda raw: b"blue" in bytes(raw))
        read = store.read(TOPIC, 0, 0, count_max=99, bytes_max=1 << 20, wants=wants)
        assert [each.queue_offset for each in read.records()] == [2]
        assert read.next_offset == 5

    asyncio.run(story())


def test_times_lead_to_the_first_message_of_a_batch() -> None:
    async def story() -> None:
        clock = ManualClock(50_000)
        store = await filled(disk_with_topic(), clock)
        assert store.offset_at_time(TOPIC, 0, 0) == 0
        assert store.offset_at_time(TOPIC, 0, 51_000) == 1
        assert store.offset_at_time(TOPIC, 0, 51_001) == 4
        assert store.offset_at_time(TOPIC, 0, 51_001, Boundary.UPPER) == 3
        assert store.offset_at_time(TOPIC, 0, 99_000) == 12
        assert store.time_of(TOPIC, 0, 3) == 51_000

    asyncio.run(story())


@pytest.mark.parametrize("ends", ["closed", "killed", "queue lost", "queue cut", "power"])
def test_a_start_finds_all_that_was_there(ends: str) -> None:
    async def story() -> None:
        disk = disk_with_topic(kind=FaultyDisk)
        store = await filled(disk)
        if ends in ("closed", "queue lost", "queue cut"):
            await store.close()
            if ends == "queue lost":
                for name in disk.names(FOLDER):
                    disk.remove(f"{FOLDER}/{name}")
            if ends == "queue cut":
                disk.remove(f"{FOLDER}/{4 * 46:020d}")
        elif ends == "power":
            assert isinstance(disk, FaultyDisk)
            await store.sync()
            disk = disk.after_power_loss()
        else:
            disk = disk.after_kill()
        again = await opened(disk, config=CONFIG)
        assert numbered(again) == ALL
        put(again, b"m", b"n")
        assert numbered(again) == [*ALL, (12, b"m"), (13, b"n")]
        await again.close()
        assert units(disk) == [(0, 1), (1, 3), (4, 2), (6, 1), (7, 4), (11, 1), (12, 2)]

    asyncio.run(story())


def test_what_expires_is_removed_and_offsets_go_on() -> None:
    async def story() -> None:
        disk = disk_with_topic()
        store = await opened(disk, config=CONFIG)
        for number in range(40):
            put(store, b"%d" % number, b"x" * 300)
        await store.close()
        config = replace(CONFIG, log_bytes_max=3 * CONFIG.log_file_bytes, files_removed_max=1000)
        store = await opened(disk, config=config)
        running = asyncio.create_task(store.run())
        await until(lambda: store.min_offset(TOPIC, 0) > 20)
        running.cancel()
        low = store.min_offset(TOPIC, 0)
        assert low % 2 == 0
        assert numbered(store)[0] == (low, b"%d" % (low // 2))
        assert len(disk.names(FOLDER)) < 10
        read = store.read(TOPIC, 0, 0, count_max=9, bytes_max=1 << 20)
        assert (read.status, read.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, low)
        assert put(store, b"y", b"z").queue_offset == 80

    asyncio.run(story())


def test_a_topic_that_was_made_again_begins_at_0_also_after_a_kill() -> None:
    async def story() -> None:
        disk = disk_with_topic()
        store = await filled(disk)
        store.delete_topic(TOPIC)
        put(store, b"new", b"newer")
        assert numbered(store) == [(0, b"new"), (1, b"newer")]
        again = await opened(disk.after_kill(), config=CONFIG)
        assert numbered(again) == [(0, b"new"), (1, b"newer")]

    asyncio.run(story())


def test_readers_wait_for_what_comes() -> None:
    async def story() -> None:
        store = await opened(disk_with_topic(), config=CONFIG)
        arrival = store.arrivals(TOPIC, 0)
        put(store, b"a", b"b")
        assert arrival.value == 2

    asyncio.run(story())


def test_readers_see_a_batch_once_it_is_safe() -> None:
    async def story() -> None:
        config = replace(CONFIG, flush="SYNC_FLUSH")
        store = await opened(disk_with_topic(), config=config)
        put(store, b"a", b"b")
        assert store.max_offset(TOPIC, 0) == 0
        await store.sync()
        assert (store.max_offset(TOPIC, 0), len(everything(store))) == (2, 2)

    asyncio.run(story())


def test_random_appends_kills_and_reads_agree_with_a_list() -> None:
    async def story(seed: int) -> None:
        random_ = random.Random(seed)
        disk, model = disk_with_topic(), list[bytes]()
        store = await opened(disk, config=CONFIG)
        for step in range(30):
            bodies = [b"%d-%d" % (step, n) for n in range(random_.randint(1, 5))]
            put(store, *bodies)
            model += bodies
            if random_.random() < 0.2:
                if random_.random() < 0.5:
                    await store.close()
                else:
                    disk = disk.after_kill()
                store = await opened(disk, config=CONFIG)
            start = random_.randrange(len(model))
            found = [each.body for each in everything(store, start=start)]
            assert found == model[start:]

    for seed in range(15):
        asyncio.run(story(seed))


@pytest.mark.parametrize("number", [0, 3, 5])
@pytest.mark.parametrize(
    "changes",
    [
        {"first_offset": 1 << 50}, {"first_offset": 0}, {"messages": 32_767}, {"messages": -1},
        {"first_offset": -5}, {"log_offset": -1}, {"record_bytes": 0}, {"first_offset": 5},
    ],
)  # fmt: skip
def test_a_damaged_unit_stops_neither_a_start_nor_its_readers(
    changes: dict[str, int], number: int
) -> None:
    async def story() -> None:
        disk = disk_with_topic()
        await (await filled(disk)).close()
        path, at = f"{FOLDER}/{number // 4 * 4 * 46:020d}", number % 4 * 46
        content = bytearray(disk.read(path) or b"")
        unit = BatchUnit._make(UNIT.unpack_from(content, at))._replace(**changes)
        UNIT.pack_into(content, at, *unit)
        disk.replace(path, bytes(content), backup=False)
        store = await opened(disk, config=CONFIG)
        offset, read = int(store.min_offset(TOPIC, 0)), []
        while offset < store.max_offset(TOPIC, 0):
            found = store.read(TOPIC, 0, offset, count_max=3, bytes_max=600)
            assert found.next_offset > offset
            read += [bytes(part) for part in found.parts]
            offset = int(found.next_offset)
        assert read
        await store.close()

    asyncio.run(story())
