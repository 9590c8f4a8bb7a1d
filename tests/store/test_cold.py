"""Reads that go far back: what is not in memory is loaded first, and no more than is wanted."""

from __future__ import annotations

import pytest

from sprocket.base.errors import StoreError
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, a_draft, opened
from tests.support import run

MIB = 1 << 20
CONFIG = StoreConfig(
    log_file_bytes=16 * MIB, queue_file_bytes=20 * 2000, message_bytes_max=MIB, index_keys=False
)
LOG = f"{ROOT}/commitlog/00000000000000000000"
QUEUE = f"{ROOT}/consumequeue/orders/0/00000000000000000000"


async def filled(disk: MemoryDisk) -> Store:
    """Three files of the log, so that the first lies far behind the end."""
    store = await opened(disk, config=CONFIG)
    for _ in range(48 * 4):
        store.append(a_draft(b"x" * (MIB // 4)))
    return store


def is_cold(store: Store, offset: int, count: int = 4, bytes_max: int = 2 * MIB) -> bool:
    return store.is_cold("orders", 0, offset, count=count, bytes_max=bytes_max)


def test_what_is_in_memory_is_not_cold() -> None:
    async def main() -> None:
        store = await filled(MemoryDisk())
        assert not is_cold(store, 0)
        assert not is_cold(store, 10**6)
        assert not store.is_cold("unknown", 0, 0, count=1, bytes_max=1)
        await store.load("unknown", 0, 0, count=1, bytes_max=1)

    run(main())


def test_records_that_are_not_in_memory_are_loaded_before_a_read() -> None:
    async def main() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        disk.cold[LOG] = range(16 * MIB)
        assert is_cold(store, 0)
        await store.load("orders", 0, 0, count=4, bytes_max=2 * MIB)
        assert not is_cold(store, 0)
        assert is_cold(store, 40), "far more than was asked for is not loaded"

    run(main())


def test_what_comes_next_is_loaded_with_it() -> None:
    async def main() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        disk.cold[LOG] = range(16 * MIB)
        await store.load("orders", 0, 0, count=1, bytes_max=2 * MIB)
        assert not is_cold(store, 1, count=2)

    run(main())


def test_the_end_of_the_log_is_taken_for_being_there() -> None:
    async def main() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        disk.cold[f"{ROOT}/commitlog/{32 * MIB:020d}"] = range(16 * MIB)
        assert not is_cold(store, 190)

    run(main())


def test_entries_of_a_queue_are_loaded_too() -> None:
    async def main() -> None:
        disk = MemoryDisk()
        store = await opened(disk, config=CONFIG)
        for _ in range(1000):
            store.append(a_draft())
        disk.cold[QUEUE] = range(20 * 1000)
        assert is_cold(store, 0)
        assert not is_cold(store, 990), "the newest are"
        await store.load("orders", 0, 0, count=32, bytes_max=MIB)
        assert not is_cold(store, 0)

    run(main())


def test_records_far_apart_are_looked_at_one_by_one() -> None:
    """A quiet topic among busy ones: what lies between its records is not loaded."""

    async def main() -> None:
        disk = MemoryDisk()
        store = await opened(disk, config=CONFIG)
        for number in range(48 * 4):
            topic = "orders" if number % 16 == 0 else "noise"
            store.append(a_draft(b"x" * (MIB // 4), topic=topic))
        assert not is_cold(store, 0, count=4, bytes_max=MIB)
        disk.cold[LOG] = range(4 * MIB, 16 * MIB)
        assert is_cold(store, 0, count=4, bytes_max=MIB)
        assert not is_cold(store, 0, count=4, bytes_max=MIB // 4)
        await store.load("orders", 0, 0, count=4, bytes_max=MIB)
        assert not is_cold(store, 0, count=2, bytes_max=MIB)

    run(main())


def test_a_disk_that_fails_is_an_error_and_not_the_end_of_the_process() -> None:
    async def main() -> None:
        disk = FaultyDisk(1)
        store = await filled(disk)
        disk.cold[LOG] = range(16 * MIB)
        disk.fail("sync")
        with pytest.raises(StoreError, match="cannot read"):
            await store.load("orders", 0, 0, count=4, bytes_max=2 * MIB)

    run(main())
