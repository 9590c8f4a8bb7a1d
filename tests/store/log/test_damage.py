"""A log that is broken in its middle: told with its place, and never cut without being asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sprocket.base.errors import DamagedLog
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, messages, opened
from tests.support import run

FILE = SMALL.log_file_bytes
COUNT = 60


async def filled(disk: MemoryDisk) -> Store:
    store = await opened(disk, clock=ManualClock(1000))
    for n in range(COUNT):
        store.append(a_draft(b"%d" % n))
    return store


def file_of(disk: MemoryDisk, log_offset: int) -> memoryview:
    start = log_offset - log_offset % FILE
    return disk.map(f"{ROOT}/commitlog/{start:020d}", FILE).buffer


def flipped_body(disk: MemoryDisk, start: int, size: int) -> None:
    file_of(disk, start)[start % FILE + 88] ^= 1


def zeroed(disk: MemoryDisk, start: int, size: int) -> None:
    file_of(disk, start)[start % FILE : start % FILE + size] = bytes(size)


def other_size(disk: MemoryDisk, start: int, size: int) -> None:
    file_of(disk, start)[start % FILE : start % FILE + 4] = (size + 1).to_bytes(4, "big")


def rest_of_the_file_zeroed(disk: MemoryDisk, start: int, size: int) -> None:
    at = start % FILE
    file_of(disk, start)[at:] = bytes(FILE - at)


def missing(disk: MemoryDisk, start: int, size: int) -> None:
    disk.remove(f"{ROOT}/commitlog/{start - start % FILE:020d}")


@pytest.mark.parametrize(
    "damage", [flipped_body, zeroed, other_size, rest_of_the_file_zeroed, missing]
)
def test_damage_before_synced_messages_refuses_the_start_and_says_where_it_is(
    damage: Callable[[MemoryDisk, int, int], None],
) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store.sync()
        (broken, *_) = [m for m in messages(store) if m.log_offset >= 4096 + FILE // 2]
        store._checkpoint.replay_from, store._checkpoint.flushed = 0, store.log_end
        await store._checkpoint.save()
        later = disk.after_kill()
        damage(later, broken.log_offset, broken.record_bytes)
        start = broken.log_offset if damage is not missing else 4096
        before = {p: later.read(p) for p in later._files if "/commitlog/" in p}
        for _ in range(2):  # also the next time
            with pytest.raises(DamagedLog, match=rf"{4096:020d} .*log offset {start}\b.*repair"):
                await opened(later)
            later = later.after_kill()
        assert {p: later.read(p) for p in later._files if "/commitlog/" in p} == before
        as_set = await opened(later, config=replace(SMALL, on_damage="CUT"))
        assert as_set.log_end == start
        assert bodies(as_set) == [m.body for m in messages(store) if m.log_offset < start]

    run(check())


def test_a_stopped_store_with_damage_is_still_a_stopped_store_after_a_refusal() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store.close()
        disk.remove(f"{ROOT}/commitlog/{2048:020d}")
        with pytest.raises(
            DamagedLog, match="the file is missing; the next message is at log offset"
        ):
            await opened(disk)
        assert disk.size(f"{ROOT}/abort") is None

    run(check())


def test_what_was_never_synced_may_be_cut_also_if_whole_records_lie_behind() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store._flush.sync_views(is_thorough=True)
        places = [store.append(a_draft(b"more")) for _ in range(3)]
        later = disk.after_kill()
        flipped_body(later, places[0].log_offset, 0)
        again = await opened(later)
        assert again.log_end == places[0].log_offset

    run(check())


def test_a_broken_last_record_is_cut_also_if_it_was_synced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        last = messages(store)[-1]
        await store.close()
        flipped_body(disk, last.log_offset, 0)
        again = await opened(disk)
        assert again.log_end == last.log_offset

    run(check())
    assert "messages are lost" in caplog.text


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_damage_in_a_store_that_java_used_last_is_told_by_its_times(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        clock = ManualClock(10_000)
        store = await opened(disk, clock=clock)
        for n in range(COUNT):
            store.append(a_draft(b"%d" % n))
            clock.move(1000)
        await store._flush.finish()
        broken = messages(store)[10]
        if stop:
            await store.close()
        raw = bytearray(disk.read(f"{ROOT}/checkpoint") or b"")
        raw[8:16] = bytes(8)
        disk.replace(f"{ROOT}/checkpoint", bytes(raw))
        later = disk.after_kill()
        flipped_body(later, broken.log_offset, 0)
        if stop:
            await opened(later)  # what an orderly stop wrote is not read again
        else:
            with pytest.raises(DamagedLog):
                await opened(later)

    run(check())


@pytest.mark.parametrize("seed", range(30))
def test_no_loss_of_power_is_taken_for_damage(seed: int) -> None:
    async def check() -> None:
        disk = FaultyDisk(seed)
        for _ in range(4):
            store = await opened(disk)
            count = int(store.max_offset("orders", 0))
            for n in range(count, count + 25):
                store.append(a_draft(b"%d" % n))
                if (n * 7 + seed) % 13 == 0:
                    await store.sync()
                if (n * 5 + seed) % 17 == 0:
                    await store._flush.sync_views(is_thorough=bool(n % 2))
            disk = disk.after_power_loss()  # type: ignore[assignment]

    run(check())
