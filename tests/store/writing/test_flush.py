"""What reaches the disk, and when."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import StoreError
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import SMALL, a_draft, bodies, opened

SYNCHRONOUS = StoreConfig(log_file_bytes=2048, queue_file_bytes=160, flush="SYNC_FLUSH")


@contextlib.asynccontextmanager
async def running(disk: FaultyDisk, config: StoreConfig = SMALL) -> AsyncIterator[Store]:
    store = await opened(disk, config=config)
    work = asyncio.create_task(store.run())
    try:
        yield store
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, StoreError):
            await work
        await store.close()


def test_messages_reach_the_disk_in_the_background() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        async with running(disk) as store:
            for n in range(30):
                store.append(a_draft(b"%d" % n))
            assert store.flushed.value == 0
            assert await store.flushed.reach(store.log_end, Deadline.after(0.6))
            later = await opened(disk.after_power_loss())  # type: ignore[arg-type]
            assert bodies(later) == [b"%d" % n for n in range(30)]

    simulate(check)


def test_views_and_checkpoint_follow_so_that_little_is_replayed() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        async with running(disk) as store:
            for _ in range(30):
                store.append(a_draft())
            await asyncio.sleep(6)
            assert store._checkpoint.replay_from == store.log_end
            assert store._checkpoint.log_ms == store._checkpoint.queues_ms > 0

    simulate(check)


def test_a_waiting_sender_does_not_wait_for_the_next_round() -> None:
    async def check(_: Network) -> None:
        async with running(FaultyDisk(seed=1), SYNCHRONOUS) as store:
            await asyncio.sleep(1)
            loop = asyncio.get_running_loop()
            began = loop.time()
            place = store.append(a_draft())
            assert await store.flushed.reach(place.end, Deadline.after(5))
            assert loop.time() == began

    simulate(check)


def test_many_waiting_senders_share_a_sync() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1, sync_seconds=(0.01, 0.01))
        async with running(disk, SYNCHRONOUS) as store:
            await asyncio.sleep(1)
            loop = asyncio.get_running_loop()
            began = loop.time()
            waits = []
            for _ in range(10):
                place = store.append(a_draft())
                waits.append(store.flushed.reach(place.end, Deadline.after(5)))
            assert all(await asyncio.gather(*waits))
            assert loop.time() - began < 0.05

    simulate(check)


def test_a_failed_sync_ends_appending_and_waiting() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        store = await opened(disk)
        work = asyncio.create_task(store.run())
        place = store.append(a_draft())
        disk.fail("sync")
        with pytest.raises(StoreError, match="disk of /store failed"):
            await store.flushed.reach(place.end, Deadline.after(5))
        with pytest.raises(StoreError, match="failed"):
            await work
        with pytest.raises(StoreError, match="failed"):
            store.append(a_draft())
        await store.close()
        assert disk.size("/store/abort") is not None, "the next opening must recover"

    simulate(check)


def test_too_many_open_files_are_no_failure_of_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        async with running(disk, SYNCHRONOUS) as store:
            disk.fail("sync", errno.EMFILE, times=70)
            end = store.append(a_draft(b"1")).end
            assert not await store.flushed.reach(end, Deadline.after(20))
            store.append(a_draft(b"2"))
            disk.fail("sync", times=0)
            assert await store.flushed.reach(store.log_end, Deadline.after(2))
        assert bodies(await opened(disk)) == [b"1", b"2"]

    simulate(check)
    assert caplog.text.count("cannot be brought to the disk") == 1


def test_closing_on_a_failing_disk_says_so() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        store = await opened(disk)
        store.append(a_draft())
        disk.fail("sync")
        with pytest.raises(StoreError, match="cannot close"):
            await store.close()
        later = await opened(disk)
        assert bodies(later) == [b"hello"]

    simulate(check)


def test_a_sync_that_is_asked_for_does_not_wait_for_the_next_round() -> None:
    async def check(_: Network) -> None:
        async with running(FaultyDisk(seed=1)) as store:
            place = store.append(a_draft())
            began = asyncio.get_running_loop().time()
            await store.sync()
            assert store.flushed.value == place.end
            assert asyncio.get_running_loop().time() == began

    simulate(check)


def test_a_sync_that_is_asked_for_and_fails_ends_appending() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        store = await opened(disk)
        store.append(a_draft())
        disk.fail("sync")
        with pytest.raises(StoreError, match="disk of /store failed"):
            await store.sync()
        with pytest.raises(StoreError, match="failed"):
            store.append(a_draft())
        await store.close()
        assert disk.size("/store/abort") is not None, "the next opening must recover"

    simulate(check)


def test_preparing_goes_on_after_the_disk_was_full() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1)
        config = StoreConfig(log_file_bytes=16 << 20, index_slots=8, index_entries=32)
        async with running(disk, config) as store:
            store.append(a_draft())
            disk.fail("zero", errno.ENOSPC)
            await asyncio.sleep(1)
            for _ in range(6):
                store.append(a_draft(b"x" * 100_000))
                await asyncio.sleep(0.1)
            assert store._log.segments.at(0).prepared_to > store.log_end

    simulate(check)


def test_what_a_power_loss_can_take_is_bounded_by_the_interval_and_two_syncs() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(seed=1, sync_seconds=(0.1, 0.1))
        loop = asyncio.get_running_loop()
        written: list[tuple[float, int]] = []
        config = StoreConfig(log_file_bytes=1 << 20, index_slots=8, index_entries=32)
        async with running(disk, config) as store:
            oldest = 0.0
            for _ in range(500):
                written.append((loop.time(), store.append(a_draft()).end))
                await asyncio.sleep(0.01)
                written = [(at, end) for at, end in written if end > store.flushed.value]
                if written:
                    oldest = max(oldest, loop.time() - written[0][0])
        assert 0.5 < oldest <= 0.5 + 2 * 0.1 + 0.02

    simulate(check)


def test_little_waits_for_the_thorough_flush_where_that_is_set() -> None:
    config = StoreConfig(
        log_file_bytes=1 << 16,
        index_slots=8,
        index_entries=32,
        flush_least_pages=2,
        flush_thorough_interval_ms=3000,
    )

    async def check(_: Network) -> None:
        async with running(FaultyDisk(seed=1), config) as store:
            first = store.append(a_draft(b"x" * 6000)).end
            assert not await store.flushed.reach(first, Deadline.after(2))
            second = store.append(a_draft(b"x" * 3000)).end
            assert await store.flushed.reach(second, Deadline.after(0.6))
            third = store.append(a_draft(b"x")).end
            assert not await store.flushed.reach(third, Deadline.after(2))
            assert await store.flushed.reach(third, Deadline.after(1.6))

    simulate(check)
