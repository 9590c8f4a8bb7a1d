"""The store as a whole: opening and closing, waiting, looking things up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError, DirectoryInUse, DiskFull, OffsetOutOfRange, StoreError
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened
from tests.support import run


def test_a_folder_of_rocketmqs_form_comes_into_being() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        assert disk.names(ROOT) == ["abort", "checkpoint"]
        store.append(a_draft())
        assert disk.names(ROOT) == ["abort", "checkpoint", "commitlog", "consumequeue"]
        await store.close()
        assert disk.names(ROOT) == ["checkpoint", "commitlog", "config", "consumequeue"]
        assert disk.names(f"{ROOT}/config") == ["queueEnds.json"]

    run(check())


def test_a_store_on_the_real_disk_keeps_its_messages(tmp_path: Path) -> None:
    async def check() -> None:
        for start in (0, 50):
            store = await Store.open(
                disk=SystemDisk(),
                clock=SystemClock(),
                root=str(tmp_path / "store"),
                config=SMALL,
                store_host=HOST,
                tag_codes=TAGS_ONLY,
            )
            assert bodies(store) == [b"%d" % n for n in range(start)]
            kept = store.read("orders", 0, 0, count_max=8, bytes_max=9999)
            for n in range(start, start + 50):
                store.append(a_draft(b"%d" % n))
            await store.close()
            assert sum(map(len, kept.parts)) == kept.bytes

    run(check())


def test_a_folder_has_one_owner() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        with pytest.raises(DirectoryInUse):
            await opened(disk)
        await store.close()
        await (await opened(disk)).close()

    run(check())


def test_a_failed_opening_gives_the_folder_back() -> None:
    async def check() -> None:
        disk = FaultyDisk()
        store = await opened(disk)
        store.append(a_draft())
        await store.close()
        other = StoreConfig(log_file_bytes=4096, queue_file_bytes=160)
        with pytest.raises(ConfigError, match="mappedFileSizeCommitLog"):
            await opened(disk, config=other)
        disk.fail("replace")
        with pytest.raises(StoreError, match="cannot open"):
            await opened(disk)
        disk.fail("sync")
        with pytest.raises(StoreError, match="cannot open"):
            await opened(disk)
        assert bodies(await opened(disk)) == [b"hello"]

    run(check())


def test_a_bad_configuration_is_found_before_anything_is_touched() -> None:
    async def check() -> None:
        with pytest.raises(ConfigError, match="deleteWhen"):
            await opened(MemoryDisk(), config=StoreConfig(log_file_bytes=2048, delete_hours="1x"))

    run(check())


def test_closing_twice_is_no_error() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        await store.close()
        await store.close()

    run(check())


def test_a_closed_store_has_nothing_to_read() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        place = store.append(a_draft())
        await store.close()
        assert store.read("orders", 0, 0, count_max=1, bytes_max=9).count == 0
        with pytest.raises(OffsetOutOfRange):
            store.lookup(place.log_offset)

    run(check())


def test_records_are_looked_up_where_they_begin() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        places = [store.append(a_draft(b"%d" % n)) for n in range(40)]
        for place in places:
            assert len(store.lookup(place.log_offset)) == place.record_bytes
        for offset in (-1, 1, int(store.log_end), 2**62):
            with pytest.raises(OffsetOutOfRange):
                store.lookup(offset)

    run(check())


def test_who_waits_for_a_message_is_woken_by_it() -> None:
    async def check(_: Network) -> None:
        store = await opened(MemoryDisk())
        waiting = asyncio.create_task(store.arrivals("orders", 0).reach(1, Deadline.after(10)))
        other = asyncio.create_task(store.arrivals("orders", 1).reach(1, Deadline.after(10)))
        await asyncio.sleep(1)
        assert not waiting.done()
        store.append(a_draft())
        await asyncio.sleep(0)
        assert await waiting
        assert not other.done()
        assert store.arrivals("orders", 0).value == 1
        assert not await other

    simulate(check)


def test_waiting_makes_no_files() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        store.arrivals("orders", 5)
        assert disk.names(f"{ROOT}/consumequeue") == []
        assert store.queues() == {}
        with pytest.raises(IllegalDraft):
            store.arrivals("../../etc", 0)

    run(check())


def test_queues_are_listed_with_their_bounds() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        for topic, number in (("a", 0), ("a", 2), ("b", 1)):
            store.append(a_draft(topic=topic, queue_number=number))
        assert store.queues() == {"a": [0, 2], "b": [1]}
        assert (store.min_offset("a", 2), store.max_offset("a", 2)) == (0, 1)
        assert (store.min_offset("x", 0), store.max_offset("x", 0)) == (0, 0)
        assert (store.log_start, store.log_end > 0) == (0, True)

    run(check())


def test_a_deleted_topic_is_gone_and_may_come_again() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        place = store.append(a_draft(b"old"))
        store.append(a_draft(b"other", topic="other"))
        store.delete_topic("orders")
        assert store.queues() == {"other": [0]}
        assert store.read("orders", 0, 0, count_max=1, bytes_max=9).count == 0
        assert len(store.lookup(place.log_offset)) == place.record_bytes
        await store.close()
        store = await opened(disk)
        assert store.queues() == {"other": [0]}
        assert store.append(a_draft(b"new")).queue_offset == 0
        assert bodies(store) == [b"new"]

    run(check())


def test_a_disk_that_fills_refuses_messages_until_there_is_room_again() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        work = asyncio.create_task(store.run())
        store.append(a_draft(b"before"))
        disk.usage_ratio = 0.93
        await asyncio.sleep(11)
        with pytest.raises(DiskFull, match=r"\[CL: 0.93 CQ: 0.93 INDEX: 0.93\].* 93 % full"):
            store.append(a_draft())
        assert bodies(store) == [b"before"], "reads go on"
        disk.usage_ratio = 0.5
        await asyncio.sleep(11)
        store.append(a_draft(b"after"))
        assert bodies(store) == [b"before", b"after"]
        work.cancel()

    simulate(check)


def test_a_store_that_was_closed_while_the_disk_was_full_is_whole() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        store.append(a_draft())
        await store.close()
        disk.usage_ratio = 0.99
        store = await opened(disk)
        with pytest.raises(DiskFull):
            store.append(a_draft())
        await store.close()
        assert disk.size(f"{ROOT}/abort") is None

    run(check())


def test_the_clock_may_go_back() -> None:
    async def check() -> None:
        clock = ManualClock(10_000)
        store = await opened(MemoryDisk(), clock=clock)
        store.append(a_draft(b"1"))
        clock.move(-5000)
        store.append(a_draft(b"2"))
        assert bodies(store) == [b"1", b"2"]
        await store.close()

    run(check())
