"""Old files go, readers go on, and a full disk refuses messages only."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sprocket.base.believed_time import PATIENCE_MS
from sprocket.base.errors import DiskFull, OffsetOutOfRange, StoreError
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

NOON_MS = int(datetime(2026, 5, 5, 12).timestamp() * 1000)
HOUR_MS = 3_600_000


@contextlib.asynccontextmanager
async def running(
    disk: FaultyDisk, clock: ManualClock, config: StoreConfig = SMALL
) -> AsyncIterator[Store]:
    store = await opened(disk, clock=clock, config=config)
    work = asyncio.create_task(store.run())
    try:
        yield store
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        await store.close()


def fill(store: Store, count: int, topic: str = "orders") -> None:
    for n in range(count):
        store.append(a_draft(b"%03d" % n, topic=topic, keys="k", unique_key=f"{topic}{n}"))


def test_expired_files_go_at_their_hour_and_views_follow() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        async with running(disk, clock) as store:
            fill(store, 60, "old")
            fill(store, 60)
            end = store.max_offset("orders", 0)
            clock.move(73 * HOUR_MS)  # 13 o'clock
            await asyncio.sleep(60)
            assert store.log_start == 0, "not its hour"
            clock.move(14 * HOUR_MS)  # 3 o'clock; it is 4 when that is believed
            fill(store, 60)
            await asyncio.sleep(PATIENCE_MS / 1000 - 10)
            clock.move(PATIENCE_MS)
            assert store.log_start == 0, "the clock may still be set right"
            await asyncio.sleep(60)
            start = store.log_start
            assert start > 0
            assert disk.names(f"{ROOT}/commitlog")[0] == f"{start:020d}"
            low, high = store.min_offset("orders", 0), store.max_offset("orders", 0)
            assert 0 < low <= end < high
            assert bodies(store)[-60:] == [b"%03d" % n for n in range(60)]
            assert store.min_offset("old", 0) == store.max_offset("old", 0) == 60
            assert len(disk.names(f"{ROOT}/consumequeue/old/0")) == 1
            assert store.find("old", "old1", count_max=1) == []
            read = store.read("orders", 0, 0, count_max=9, bytes_max=999)
            assert (read.status, read.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, low)
            with pytest.raises(OffsetOutOfRange):
                store.lookup(0)

    simulate(check)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_store_that_lost_old_files_opens_again(is_killed: bool) -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(seed=2), ManualClock(NOON_MS)
        async with running(disk, clock) as store:
            fill(store, 60, "old")
            fill(store, 60)
            clock.move(88 * HOUR_MS)
            fill(store, 20)
            await asyncio.sleep(PATIENCE_MS / 1000 + 30)
            assert store.log_start > 0
            kept, bounds = bodies(store), (store.log_start, store.min_offset("orders", 0))
            await store.sync()
            torn = disk.after_power_loss()
        later = await opened(torn if is_killed else disk, clock=clock)
        assert (later.log_start, later.min_offset("orders", 0)) == bounds
        assert bodies(later) == kept
        assert later.append(a_draft(topic="old")).queue_offset == 60
        await later.close()

    simulate(check)


def test_what_a_reader_holds_stays_after_its_file_went() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        async with running(disk, clock) as store:
            fill(store, 60)
            held = store.read("orders", 0, 0, count_max=5, bytes_max=9999)
            before = [bytes(part) for part in held.parts]
            disk.usage_ratio = 0.86
            await asyncio.sleep(30)
            assert store.log_start > 0
            assert [bytes(part) for part in held.parts] == before

    simulate(check)


def test_files_are_forced_out_one_by_one_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        async with running(disk, clock) as store:
            fill(store, 100)
            await asyncio.sleep(1)  # the index follows
            files = len(disk.names(f"{ROOT}/commitlog"))
            sizes = sum(
                disk.size(f"{ROOT}/{folder}/{name}") or 0
                for folder in ("commitlog", "consumequeue/orders/0", "index", "")
                for name in disk.names(f"{ROOT}/{folder}")
            )
            disk.capacity_bytes = int(sizes / 0.88)
            await asyncio.sleep(15)
            left = len(disk.names(f"{ROOT}/commitlog"))
            assert 0 < files - left <= 2, "no more than must be"
            assert 0.75 < disk.usage(ROOT) <= 0.85
            assert bodies(store)[-1] == b"099"

    with caplog.at_level(logging.WARNING):
        simulate(check)
    assert "before its time" in caplog.text


def test_a_log_that_is_larger_than_it_may_be_loses_its_oldest_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        config = replace(SMALL, log_bytes_max=4 * SMALL.log_file_bytes)
        async with running(disk, clock, config) as store:
            fill(store, 100)
            await asyncio.sleep(21)
            assert len(disk.names(f"{ROOT}/commitlog")) == 4
            low = store.min_offset("orders", 0)
            assert low > 0
            read = store.read("orders", 0, 0, count_max=9, bytes_max=999)
            assert (read.status, read.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, low)
            assert bodies(store)[-1] == b"099"

    with caplog.at_level(logging.WARNING):
        simulate(check)
    assert f"more than {4 * SMALL.log_file_bytes} bytes" in caplog.text


def test_others_have_their_turn_while_thousands_of_queues_follow() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        config = replace(SMALL, log_bytes_max=1, log_file_bytes=1 << 15)
        store = await opened(disk, clock=clock, config=config)
        for n in range(400):
            store.append(a_draft(queue_number=n))
        await store.sync()
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count())
        assert await store.disk_space.remove_old() >= 1
        counting.cancel()
        assert turns > 20
        assert store.min_offset("orders", 0) == 1
        assert store.min_offset("orders", 399) == 0

    simulate(check)


def test_a_reader_between_removal_and_following_is_told_that_messages_are_gone() -> None:
    store = run(opened(FaultyDisk(), clock=ManualClock(NOON_MS)))
    fill(store, 60)
    store._log.remove_first()
    read = store.read("orders", 0, 0, count_max=9, bytes_max=999)
    assert read.status is ReadStatus.MESSAGE_WAS_REMOVING
    assert read.next_offset > 0
    assert store.min_offset("orders", 0) == 0


def test_the_file_that_is_written_to_never_goes() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        async with running(disk, clock) as store:
            fill(store, 100)
            disk.usage_ratio = 0.89
            await asyncio.sleep(60)
            assert len(disk.names(f"{ROOT}/commitlog")) in (1, 2)
            assert bodies(store)[-1] == b"099"

    simulate(check)


def test_only_what_need_not_be_replayed_goes() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        store = await opened(disk, clock=clock)
        fill(store, 60)
        disk.usage_ratio = 0.89
        disk.fail("sync")
        with pytest.raises(OSError, match="error"):
            await store.disk_space.remove_old()
        assert store.log_start == 0

    simulate(check)


def test_a_full_disk_refuses_messages_and_gives_what_there_is() -> None:
    async def check(_: Network) -> None:
        disk, clock = FaultyDisk(), ManualClock(NOON_MS)
        async with running(disk, clock, replace(SMALL, may_force=False)) as store:
            fill(store, 50)
            disk.capacity_bytes = 1
            with pytest.raises(DiskFull):
                fill(store, 50)
            kept = bodies(store)
            await asyncio.sleep(11)
            with pytest.raises(DiskFull, match="CL:"):
                store.append(a_draft())
            assert bodies(store) == kept
            assert store.log_start == 0
            disk.capacity_bytes = 0
            await asyncio.sleep(11)
            store.append(a_draft(b"after"))
            assert bodies(store) == [*kept, b"after"]

    simulate(check)


class RoomyFile(MemoryMappedFile):
    """As on a real disk, what has room needs none."""

    def reserve(self, start: int, end: int) -> None:
        disk = self._disk
        assert isinstance(disk, FullDisk)
        if end > disk.room_ends.get(self.path, 0):
            super().reserve(start, end)
            disk.room_ends[self.path] = end


class FullDisk(FaultyDisk):
    """Has no room for anything new while it is full, but what was given back may be taken again."""

    def __init__(self) -> None:
        super().__init__()
        self.room_ends: dict[str, int] = {}
        self.freed: dict[int, int] = {}

    def map(self, path: str, size: int) -> RoomyFile:
        if self.size(path) is None and self.freed.get(size):
            self.freed[size] -= 1
            mapped = MemoryDisk.map(self, path, size)
            self.room_ends[path] = size
        else:
            mapped = super().map(path, size)
        return RoomyFile(path, mapped._file, self)

    def remove(self, path: str) -> None:
        size = self.size(path) or 0
        self.freed[size] = self.freed.get(size, 0) + 1
        super().remove(path)

    def fill(self, times: int = 1 << 30) -> None:
        for operation in ("map", "zero", "replace"):
            self.fail(operation, errno.ENOSPC, times=times)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_start_on_a_full_disk_gives_what_there_is_and_takes_messages_once_there_is_room(
    is_killed: bool,
) -> None:
    async def check(_: Network) -> None:
        disk, clock = FullDisk(), ManualClock(NOON_MS)
        async with running(disk, clock, SMALL) as store:
            fill(store, 30)
            await asyncio.sleep(30)  # all is on the disk
            fill(store, 30)
            store.append(a_draft(topic="gone"))
            store.delete_topic("gone")
            kept = bodies(store)
            left = disk.after_kill()
        full = left if is_killed else disk
        assert isinstance(full, FullDisk)
        full.fill()
        async with running(full, clock, SMALL) as store:
            assert bodies(store) == kept
            with pytest.raises(DiskFull):
                store.append(a_draft(topic="new"))
            assert not store.queues().get("gone")
            full.fill(0)
            await asyncio.sleep(11)
            store.append(a_draft(b"after"))
            assert bodies(store) == [*kept, b"after"]
            after_kill = full.after_kill()
        async with running(after_kill, clock, SMALL) as store:
            assert bodies(store) == [*kept, b"after"]

    simulate(check)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(tmp_path)],
        check=False,
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.process
def test_a_real_disk_that_runs_full_is_an_error_and_not_the_end(small_disk: Path) -> None:
    config = StoreConfig(
        log_file_bytes=64 << 20, queue_file_bytes=40_000, index_slots=100, index_entries=100_000
    )

    async def check() -> None:
        store = await Store.open(
            disk=SystemDisk(),
            clock=SystemClock(),
            root=str(small_disk / "store"),
            config=config,
            store_host=HOST,
            tag_codes=TAGS_ONLY,
        )
        work = asyncio.create_task(store.run())
        count = 0
        full: StoreError | None = None
        while full is None:
            try:
                store.append(a_draft(b"x" * 4000, keys=f"k{count}"))
                count += 1
            except StoreError as error:
                full = error
            await asyncio.sleep(0)
        assert isinstance(full, DiskFull)
        assert count > 1000
        assert len(bodies(store)) == count
        work.cancel()
        await store.close()

    run(check())
