"""Reads from a queue, as Java answers them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sprocket.base.errors import CorruptRecord
from sprocket.message.record import scan
from sprocket.store.reading.queue_reader import (
    SCANNED_ENTRIES_MAX,
    SCANNED_RECORDS_MAX,
    ReadFilter,
    ReadResult,
    ReadStatus,
)
from sprocket.store.store import Store
from sprocket.testing.disk import MemoryDisk
from tests.store.making import SMALL, StoreConfig, a_draft, opened
from tests.support import run

EVERYTHING = 1 << 30


async def a_store(count: int = 20, config: StoreConfig = SMALL) -> Store:
    store = await opened(MemoryDisk(), config=config)
    for n in range(count):
        store.append(a_draft(b"%d" % n, tag_code=n % 3))
    return store


def test_records_of_a_read_come_in_order_and_damage_costs_the_rest_of_its_part() -> None:
    async def test() -> None:
        store = await a_store(3)
        found = read(store, 0)
        assert [bytes(each.body) for each in found.records()] == [b"0", b"1", b"2"]
        size = int.from_bytes(found.parts[0][:4], "big")
        torn = memoryview(bytearray(found.parts[0]))
        torn[size + 4] = 0  # the magic of the second
        two = replace(found, parts=[torn, found.parts[0][:size]])
        damage: list[CorruptRecord] = []
        left = two.records(on_damage=damage.append)
        assert [bytes(each.body) for each in left] == [b"0", b"0"]
        assert len(damage) == 1
        with pytest.raises(CorruptRecord):
            list(two.records())
        await store.close()

    run(test())


def read(
    store: Store,
    offset: int,
    count_max: int = 32,
    bytes_max: int = EVERYTHING,
    wants: Callable[[int], bool] | None = None,
) -> ReadResult:
    wanted = None if wants is None else ReadFilter(wants)
    return store.read("orders", 0, offset, count_max=count_max, bytes_max=bytes_max, wants=wanted)


def found(result: ReadResult) -> list[int]:
    messages = list(scan(b"".join(result.parts)))
    assert len(messages) == result.count
    assert sum(map(len, result.parts)) == result.bytes
    return [int(message.body) for message in messages]


def test_messages_come_in_order_and_say_where_to_go_on() -> None:
    async def check() -> None:
        store = await a_store()
        result = read(store, 2, 4)
        assert found(result) == [2, 3, 4, 5]
        assert (result.status, result.next_offset) == (ReadStatus.FOUND, 6)
        assert (result.min_offset, result.max_offset) == (0, 20)

    run(check())


def test_all_messages_come_by_going_on_over_files_of_log_and_queue() -> None:
    async def check() -> None:
        store = await a_store(100)
        bodies: list[int] = []
        while len(bodies) < 100:
            result = read(store, len(bodies))
            bodies += found(result)
            assert result.next_offset == len(bodies)
        assert bodies == list(range(100))

    run(check())


def test_records_side_by_side_are_one_part() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk(), config=StoreConfig(log_file_bytes=65536))
        for n in range(12):
            store.append(a_draft(b"%d" % n, queue_number=0 if n < 8 else n % 2))
        result = read(store, 0)
        assert found(result) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
        assert len(result.parts) == 2

    run(check())


@pytest.mark.parametrize("count_max", [0, -1, 1])
def test_one_message_comes_even_if_none_is_asked_for(count_max: int) -> None:
    async def check() -> None:
        assert found(read(await a_store(), 3, count_max)) == [3]

    run(check())


def test_the_first_message_comes_whatever_its_size_and_no_other_beyond_the_limit() -> None:
    async def check() -> None:
        store = await a_store(3)
        size = read(store, 0, 1).bytes
        assert found(read(store, 0, bytes_max=0)) == [0]
        assert found(read(store, 0, bytes_max=2 * size)) == [0, 1]
        assert found(read(store, 0, bytes_max=3 * size - 1)) == [0, 1]

    run(check())


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (-1, ReadStatus.OFFSET_TOO_SMALL, 0),
        (20, ReadStatus.OFFSET_OVERFLOW_ONE, 20),
        (21, ReadStatus.OFFSET_OVERFLOW_BADLY, 20),
        (25, ReadStatus.OFFSET_OVERFLOW_BADLY, 20),
        (2**62, ReadStatus.OFFSET_OVERFLOW_BADLY, 20),
    ],
)
def test_offsets_outside_lead_back_inside(
    offset: int, status: ReadStatus, next_offset: int
) -> None:
    """A consumer a little beyond the end must never be sent to the beginning."""

    async def check() -> None:
        result = read(await a_store(), offset)
        assert (result.status, result.next_offset, result.count) == (status, next_offset, 0)

    run(check())


def test_below_the_minimum_leads_to_the_minimum_and_beyond_the_end_still_to_the_end() -> None:
    async def check() -> None:
        store = await a_store(100)
        store._log.segments.remove_before(4096)
        list(store._queues.trim(store.log_start))
        low = store.min_offset("orders", 0)
        assert 0 < low < 100
        below, beyond = read(store, low - 1), read(store, 105)
        assert (below.status, below.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, low)
        assert (beyond.status, beyond.next_offset) == (ReadStatus.OFFSET_OVERFLOW_BADLY, 100)
        assert found(read(store, low, 1)) == [low]

    run(check())


def test_a_queue_without_messages_and_one_never_heard_of_have_no_message() -> None:
    async def check() -> None:
        store = await a_store(1)
        store.arrivals("orders", 7)
        for number in (7, 8):
            result = store.read("orders", number, 0, count_max=1, bytes_max=1)
            assert result.status is ReadStatus.NO_MESSAGE_IN_QUEUE
            assert (result.next_offset, result.max_offset) == (0, 0)

    run(check())


def test_a_filter_passes_over_what_is_not_wanted() -> None:
    async def check() -> None:
        store = await a_store(8)
        result = read(store, 0, 2, wants=lambda code: code == 1)
        assert found(result) == [1, 4]
        assert result.next_offset == 5

    run(check())


def test_a_filter_that_matches_nothing_says_how_far_it_looked() -> None:
    async def check() -> None:
        store = await a_store(20)
        result = read(store, 0, wants=lambda code: False)
        assert (result.status, result.next_offset) == (ReadStatus.NO_MATCHED_MESSAGE, 8)
        assert result.next_offset < result.max_offset
        result = read(store, 16, wants=lambda code: False)
        assert result.next_offset == result.max_offset

    run(check())


def test_a_filter_looks_at_a_bounded_number_of_entries() -> None:
    async def check() -> None:
        store = await a_store(SCANNED_ENTRIES_MAX + 10, StoreConfig(log_file_bytes=1 << 20))
        looked = []
        result = read(store, 0, wants=lambda code: bool(looked.append(code)))
        assert len(looked) == result.next_offset == SCANNED_ENTRIES_MAX

    run(check())


def test_properties_choose_among_records_and_fewer_are_looked_at() -> None:
    async def check() -> None:
        count = SCANNED_RECORDS_MAX + 10
        store = await opened(MemoryDisk(), config=StoreConfig(log_file_bytes=1 << 20))
        for n in range(count):
            store.append(a_draft(b"%d" % n, tag_code=n % 3, properties=b"n\x01%d\x02" % n))
        seen: list[memoryview] = []
        wants = ReadFilter(lambda code: code == 1, lambda text: bool(seen.append(text)))
        result = store.read("orders", 0, 0, count_max=9, bytes_max=EVERYTHING, wants=wants)
        assert (result.status, result.next_offset) == (
            ReadStatus.NO_MATCHED_MESSAGE, SCANNED_RECORDS_MAX,
        )  # fmt: skip
        assert seen == [b"n\x01%d\x02" % n for n in range(1, SCANNED_RECORDS_MAX, 3)]
        wants = ReadFilter(by_properties=lambda text: text[-2:] == b"7\x02")
        result = store.read("orders", 0, 0, count_max=3, bytes_max=EVERYTHING, wants=wants)
        assert (found(result), result.next_offset) == ([7, 17, 27], 28)

    run(check())


def test_a_missing_log_file_is_passed_over_by_those_who_look_at_properties_too() -> None:
    async def check() -> None:
        store = await a_store(100)
        missing = store._log.segments.starts[2]
        store._log.segments._remove(missing)
        seen: list[int] = []
        offset = 0
        wants = ReadFilter(by_properties=lambda text: True)
        while offset < 100:
            result = store.read(
                "orders", 0, offset, count_max=32, bytes_max=EVERYTHING, wants=wants
            )
            seen += found(result)
            offset = result.next_offset
        assert {0, 99} < set(seen)
        assert 70 < len(seen) < 95

    run(check())


def test_records_that_are_gone_are_passed_over() -> None:
    async def check() -> None:
        store = await a_store(100)
        store._log.segments.remove_before(4096)
        result = read(store, 0)
        assert (result.status, result.next_offset) == (ReadStatus.MESSAGE_WAS_REMOVING, 8)
        while not result.count:
            result = read(store, result.next_offset)
        assert found(result)[0] == result.next_offset - result.count

    run(check())


def test_a_log_file_missing_in_the_middle_is_passed_over() -> None:
    async def check() -> None:
        store = await a_store(100)
        missing = store._log.segments.starts[2]
        store._log.segments._remove(missing)
        seen: list[int] = []
        offset = 0
        while offset < 100:
            result = read(store, offset)
            seen += found(result)
            assert result.next_offset > offset
            offset = result.next_offset
        assert seen == [n for n in range(100) if n in seen]
        assert {0, 99} < set(seen)
        assert 70 < len(seen) < 95

    run(check())


def test_an_entry_file_that_is_gone_leads_to_the_next() -> None:
    async def check() -> None:
        store = await a_store(20)
        store._by_name["orders", 0]._segments.remove_before(160)
        result = read(store, 3)
        assert (result.status, result.next_offset) == (ReadStatus.OFFSET_FOUND_NULL, 8)

    run(check())


def test_parts_outlive_the_store() -> None:
    async def check() -> None:
        store = await a_store(20)
        result = read(store, 0, 8)
        await store.close()
        assert found(result) == list(range(8))

    run(check())
