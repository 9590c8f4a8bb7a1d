"""Reads that go far back: what is not in memory is loaded first, and no more than is wanted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sprocket.base.errors import StoreError
from sprocket.store.config import StoreConfig
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.reading.by_time import Boundary
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
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


@pytest.mark.parametrize("file", [0, 1])
def test_records_near_each_other_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch, file: int
) -> None:
    """A topic among others, from the end of one file into the next."""
    looks = 0
    is_in_memory = MemoryMappedFile.is_in_memory

    def looked_at(self: MemoryMappedFile, start: int, end: int) -> bool:
        nonlocal looks
        looks += 1
        return is_in_memory(self, start, end)

    async def main() -> None:
        nonlocal looks
        disk = MemoryDisk()
        store = await opened(disk, config=CONFIG)
        while store.log_end < 48 * MIB:
            for topic in ("orders", "noise", "noise", "noise"):
                store.append(a_draft(b"x" * 4096, topic=topic))
        border = 16 * MIB // (4 * 4096 + 4 * 100)
        monkeypatch.setattr(MemoryMappedFile, "is_in_memory", looked_at)
        sought = {"count": 400, "bytes_max": 2 * MIB}
        assert not is_cold(store, border - 200, **sought)
        assert looks <= 4
        disk.cold[LOG if file == 0 else f"{ROOT}/commitlog/{16 * MIB:020d}"] = range(16 * MIB)
        assert is_cold(store, border - 200, **sought)
        await store.load("orders", 0, border - 200, **sought)
        assert not is_cold(store, border - 200, **sought)

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


class Pages:
    """Which pages were loaded of files that are not in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loaded: set[tuple[str, int]] = set()

        def is_in_memory(file: MemoryMappedFile, start: int, end: int) -> bool:
            return self.has(file.path, start, end - start)

        async def load(file: MemoryMappedFile, start: int, end: int) -> None:
            self.loaded |= {(file.path, page) for page in range(start // 4096, -(-end // 4096))}

        monkeypatch.setattr(MemoryMappedFile, "is_in_memory", is_in_memory)
        monkeypatch.setattr(MemoryMappedFile, "load", load)

    def has(self, path: str, start: int, size: int) -> bool:
        pages = range(start // 4096, (start + size - 1) // 4096 + 1)
        return all((path, page) in self.loaded for page in pages)


def test_a_search_by_time_finds_in_memory_all_that_it_looks_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages, looked = Pages(monkeypatch), []
    stored_ms_at = CommitLog.stored_ms_at

    def looking(log: CommitLog, log_offset: int) -> int:
        looked.append(log_offset)
        return stored_ms_at(log, log_offset)

    async def main() -> None:
        clock = ManualClock(1000)
        store = await opened(MemoryDisk(), config=CONFIG, clock=clock)
        for _ in range(48 * 4):
            store.append(a_draft(b"x" * (MIB // 4)))
            clock.move(1)
        await store.cold.load_search("unknown", 0, 1000)
        for time_ms, boundary in product((0, 1030, 1100, 10**6), Boundary):
            pages.loaded.clear()
            await store.cold.load_search("orders", 0, time_ms + (boundary is Boundary.UPPER))
            with monkeypatch.context() as patch:
                patch.setattr(CommitLog, "stored_ms_at", looking)
                store.offset_at_time("orders", 0, time_ms, boundary)
            old = [at for at in looked if at < 16 * MIB]
            assert all(pages.has(LOG, at, 96) for at in old)
            assert bool(old) == (time_ms < 1100)
            assert len(pages.loaded) < 40
            looked.clear()

    run(main())


def test_a_record_is_brought_whole_and_nonsense_brings_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages(monkeypatch)

    async def main() -> None:
        store = await filled(MemoryDisk())
        for nonsense in (-1, 1 << 40, int(store.log_end), MIB + 7):
            await store.cold.load_record(nonsense)
        assert len(pages.loaded) < 8
        await store.cold.load_record(0)
        assert pages.has(LOG, 0, len(store.lookup(0)))
        await store.cold.load_time("orders", 0, 20)
        at = store._by_name["orders", 0].position(20)[0]
        assert pages.has(LOG, at, 96)

    run(main())


def test_finding_by_key_finds_in_memory_all_that_it_looks_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages(monkeypatch)
    config = replace(CONFIG, index_keys=True, index_slots=8, index_entries=400)

    async def main() -> None:
        store = await opened(MemoryDisk(), config=config)
        for number in range(48 * 4):
            key = f"key-{number % 32}"
            properties = f"UNIQ_KEY\x01{key}\x02".encode()
            store.append(a_draft(b"x" * (MIB // 4), unique_key=key, properties=properties))
        everywhere = {"begin_ms": 0, "end_ms": 2**63 - 1}
        await store.cold.load_found("orders", "key-3", count_max=6, **everywhere)
        index = {path for path, _ in pages.loaded if "/index/" in path}
        assert all(pages.has(path, 0, 40 + 8 * 4 + 193 * 20) for path in index)
        assert len(index) == 1
        found = store.find("orders", "key-3", count_max=6)
        assert len(found) == 6
        for number in (3, 35):
            at, size = store._by_name["orders", 0].position(number)
            assert pages.has(LOG, at, size)

    run(main())
