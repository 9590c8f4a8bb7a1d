"""Offsets by time, as Java answers them."""

from __future__ import annotations

import pytest

from sprocket.message.hosts import pack
from sprocket.store.reading.by_time import Boundary
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from tests.store.making import a_draft, opened
from tests.support import run

T0 = 1_700_000_000_000


async def stored_at(*times: int) -> Store:
    clock = ManualClock(T0)
    store = await opened(MemoryDisk(), clock=clock)
    for number, time in enumerate(times):
        clock.move(T0 + time - clock.now_ms())
        # Every second sender has an IPv6 address, which moves the time within the record.
        born_host = pack("[::1]:5" if number % 2 else "1.1.1.1:5")
        store.append(a_draft(born_host=born_host))
    return store


@pytest.mark.parametrize(
    ("asked", "lower", "upper"),
    [
        (T0 - 50, 0, 0),
        (T0, 0, 0),
        (T0 + 50, 1, 0),
        (T0 + 322, 1, 1),
        (T0 + 372, 2, 1),
        (T0 + 632, 2, 2),
        (T0 + 633, 3, 2),
        (2**63 - 1, 3, 2),
        (0, 0, 0),
        (-1, 0, 0),
    ],
)
def test_the_table_that_java_gave(asked: int, lower: int, upper: int) -> None:
    async def check() -> None:
        store = await stored_at(0, 322, 632)
        assert store.offset_at_time("orders", 0, asked) == lower
        assert store.offset_at_time("orders", 0, asked, Boundary.LOWER) == lower
        assert store.offset_at_time("orders", 0, asked, Boundary.UPPER) == upper

    run(check())


def test_of_messages_of_one_time_lower_means_the_first_and_upper_the_last() -> None:
    async def check() -> None:
        store = await stored_at(0, *[100] * 20, 200)
        assert store.offset_at_time("orders", 0, T0 + 100) == 1
        assert store.offset_at_time("orders", 0, T0 + 100, Boundary.UPPER) == 20

    run(check())


def test_a_queue_without_messages_answers_zero() -> None:
    async def check() -> None:
        store = await stored_at()
        store.arrivals("orders", 0)
        for number in (0, 1):
            for boundary in Boundary:
                assert store.offset_at_time("orders", number, T0, boundary) == 0
            assert store.time_of("orders", number, 0) == -1

    run(check())


def test_times_are_told_for_messages_that_are_there() -> None:
    async def check() -> None:
        store = await stored_at(0, 322, 632)
        assert [store.time_of("orders", 0, n) for n in (-1, 0, 1, 2, 3)] == [
            -1, T0, T0 + 322, T0 + 632, -1,
        ]  # fmt: skip

    run(check())


def test_expired_messages_count_as_older_than_any_time() -> None:
    async def check() -> None:
        store = await stored_at(*range(0, 10_000, 100))
        store._log.segments.remove_before(4096)
        first = next(n for n in range(100) if store._by_name["orders", 0].position(n)[0] >= 4096)
        assert store.offset_at_time("orders", 0, 0) == first
        list(store._queues.trim(store.log_start))
        assert store.offset_at_time("orders", 0, 0, Boundary.UPPER) == first
        assert store.time_of("orders", 0, store.min_offset("orders", 0)) == T0 + first * 100

    run(check())
