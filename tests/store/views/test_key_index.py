"""Messages found by key."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from typing import Any

import pytest

from sprocket.base.errors import DiskFull
from sprocket.message import properties
from sprocket.message.record import Draft, decode
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views import key_index
from sprocket.store.views.key_index import KeyIndex
from sprocket.testing.clock import LoopClock, ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

T0 = 1_700_000_000_000


def keyed(body: bytes, keys: str = "", unique_key: str = "", **changes: Any) -> Draft:
    pairs = {"KEYS": keys, "UNIQ_KEY": unique_key}
    text = properties.encode({name: value for name, value in pairs.items() if value}).encode()
    return a_draft(body, properties=text, keys=keys, unique_key=unique_key, **changes)


def found(
    store: Store, key: str, topic: str = "orders", count_max: int = 99, **times: int
) -> list[bytes]:
    return [decode(r).body for r in store.find(topic, key, count_max=count_max, **times)]


def test_words_and_the_unique_id_lead_to_the_message() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        store.append(keyed(b"1", "a b", "ID1"))
        store.append(keyed(b"2", "b", "ID2"))
        store.append(a_draft(b"3"))
        assert found(store, "b") == [b"2", b"1"], "newest first, without waiting for anything"
        assert found(store, "a") == [b"1"]
        assert found(store, "ID2") == [b"2"]
        assert found(store, "c") == found(store, "") == found(store, "a b") == []
        assert found(store, "b", count_max=1) == [b"2"]

    run(check())


def test_equal_hashes_of_other_topics_and_keys_are_told_apart() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        store.append(keyed(b"1", "Aa", topic="AaTopic"))
        store.append(keyed(b"2", "BB", topic="BBTopic"))
        assert found(store, "BB", "AaTopic") == []
        assert found(store, "Aa", "BBTopic") == []
        assert found(store, "Aa", "AaTopic") == [b"1"]
        assert found(store, "BB", "BBTopic") == [b"2"]

    run(check())


def test_a_word_said_twice_finds_the_message_once() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        store.append(keyed(b"1", "k  k", "k"))
        assert found(store, "k") == [b"1"]

    run(check())


def test_times_bound_the_answer_exactly() -> None:
    async def check() -> None:
        clock = ManualClock(T0)
        store = await opened(MemoryDisk(), clock=clock)
        for n in range(20):
            store.append(keyed(b"%d" % n, "k"))
            clock.move(700)
        assert found(store, "k", begin_ms=T0 + 1400, end_ms=T0 + 2800) == [b"4", b"3", b"2"]
        assert found(store, "k", begin_ms=T0 + 1401, end_ms=T0 + 2799) == [b"3"]
        assert found(store, "k", begin_ms=T0 + 99_999) == []
        assert found(store, "k", end_ms=T0 - 1) == []

    run(check())


def test_files_follow_one_another_and_are_found_after_a_restart() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk, clock=ManualClock(T0))
        places = [store.append(keyed(b"%d" % n, f"k{n % 10}", f"ID{n}")) for n in range(100)]
        wanted = [b"%d" % n for n in range(93, -1, -10)]
        assert found(store, "k3") == wanted
        names = disk.names(f"{ROOT}/index")
        assert len(names) == 7
        assert names[:2] == ["20231114221320000", "20231114221320001"]
        await store.close()
        store = await opened(disk)
        assert found(store, "k3") == wanted
        assert store.index_end == (T0, places[-1].log_offset)
        store.append(keyed(b"more", "k3"))
        assert found(store, "k3") == [b"more", *wanted]

    run(check())


@pytest.mark.parametrize("seed", range(8))
def test_after_a_crash_what_was_synced_is_found_and_nothing_is_found_wrongly(seed: int) -> None:
    async def check() -> None:
        disk = FaultyDisk(seed)
        store = await opened(disk)
        for n in range(40):
            store.append(keyed(b"%d" % n, f"k{n % 4}"))
        await store._flush.sync_log()
        await store._flush.sync_views(is_thorough=True)
        for n in range(40, 60):
            store.append(keyed(b"%d" % n, f"k{n % 4}"))
        store._index.catch_up()
        later = await opened(disk.after_power_loss() if seed else disk.after_kill())
        kept = int(later.max_offset("orders", 0))
        assert kept >= 40
        for n in range(4):
            wanted = [b"%d" % m for m in range(kept) if m % 4 == n]
            assert found(later, f"k{n}") == wanted[::-1]

    run(check())


def test_a_record_that_is_replayed_gets_no_second_entry() -> None:
    """Java shows a message as often as the index leads to it."""

    async def check() -> None:
        disk = FaultyDisk(0)
        store = await opened(disk)
        for n in range(40):
            store.append(keyed(b"%d" % n, "k", f"ID{n}"))
            if n == 10:
                await store._flush.sync_log()
                await store._flush.sync_views(is_thorough=True)
        store._index.catch_up()
        end = store.index_end
        for _ in range(2):
            disk = disk.after_kill()
            store = await opened(disk)
            assert found(store, "k") == [b"%d" % n for n in range(39, -1, -1)]
            assert sum(file.count - 1 for file in store._index._files) == 80
            assert store.index_end == end
        store.append(keyed(b"new", "k"))
        assert len(found(store, "k")) == 41
        assert sum(file.count - 1 for file in store._index._files) == 81

    run(check())


def test_entries_of_a_log_that_was_cut_lead_nowhere() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        keep = store.append(keyed(b"kept", "k"))
        for n in range(5):
            store.append(keyed(b"lost %d" % n, "k"))
        store._index.catch_up()
        disk.map(f"{ROOT}/commitlog/{0:020d}", 2048).buffer[keep.end : keep.end + 4] = bytes(4)
        later = await opened(disk.after_kill())
        assert found(later, "k") == [b"kept"]
        later.append(keyed(b"new", "other"))
        assert found(later, "k") == [b"kept"]
        assert found(later, "other") == [b"new"]

    run(check())


def test_an_index_that_is_gone_with_its_queues_is_built_anew() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(50):
            store.append(keyed(b"%d" % n, "k"))
        await store.close()
        for folder in ("index", "consumequeue/orders/0"):
            for name in disk.names(f"{ROOT}/{folder}"):
                disk.remove(f"{ROOT}/{folder}/{name}")
        assert len(found(await opened(disk), "k")) == 50

    run(check())


def test_messages_are_taken_in_in_the_background() -> None:
    async def check(_: Network) -> None:
        store = await opened(MemoryDisk())
        work = asyncio.create_task(store.run())
        for n in range(600):
            store.append(keyed(b"%d" % n, "k"))
        await asyncio.sleep(0.2)
        assert store._index._pending.count == 0
        work.cancel()

    simulate(check)


def test_what_waits_to_be_taken_in_is_bounded() -> None:
    async def check() -> None:
        config = StoreConfig(log_file_bytes=1 << 20, index_slots=8, index_entries=32_768)
        store = await opened(MemoryDisk(), config=config)
        for _ in range(9000):
            store.append(keyed(b"", "k"))
        assert 0 < store._index._pending.count < 8192

    run(check())


def test_a_full_disk_costs_the_index_and_not_the_messages() -> None:
    async def check() -> None:
        disk = FaultyDisk()
        store = await opened(disk)
        store.append(a_draft(b"0"))
        store.append(keyed(b"1", "k"))
        disk.fail("map", errno.ENOSPC)
        assert found(store, "k") == []
        assert bodies(store) == [b"0", b"1"]
        store.append(keyed(b"2", "k"))
        assert found(store, "k") == [b"2", b"1"]  # once there is room, all are found
        await store.close()

    run(check())


class LittleDisk(MemoryDisk):
    """Has room for everything but the index."""

    is_little = True

    def map(self, path: str, size: int) -> MemoryMappedFile:
        if self.is_little and "/index/" in path and self.size(path) is None:
            raise OSError(errno.ENOSPC, "no room")
        return super().map(path, size)


def test_what_has_no_room_in_the_index_is_found_after_the_next_start() -> None:
    async def check() -> None:
        disk = LittleDisk()
        store = await opened(disk)
        for number in range(10):
            store.append(keyed(b"%d" % number, "k"))
        assert found(store, "k") == []
        await store.close()
        disk.is_little = False
        store = await opened(disk)
        assert found(store, "k") == [b"%d" % number for number in reversed(range(10))]
        await store.close()

    run(check())


def test_what_waits_for_room_in_the_index_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_LEFT_MAX", 5)

    async def check() -> None:
        disk = LittleDisk()
        store = await opened(disk)
        for number in range(10):
            store.append(keyed(b"%d" % number, "k"))
            assert found(store, "k") == []
        disk.is_little = False
        assert found(store, "k") == [b"9", b"8", b"7", b"6"]
        await store.close()

    run(check())


def test_old_files_go_though_there_is_no_room_in_the_index() -> None:
    async def check(_: Network) -> None:
        store = await opened(LittleDisk(), config=replace(SMALL, log_bytes_max=3 * 2048))
        work = asyncio.ensure_future(store.run())
        for number in range(100):
            store.append(keyed(b"%d" % number, "k"))
        await asyncio.sleep(20)
        assert store.log_start > 0
        work.cancel()
        await store.close()

    simulate(check)


def test_rolled_back_messages_are_not_found_and_prepared_ones_are() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        for body, sys_flag in ((b"prepared", 0x4), (b"committed", 0x8), (b"gone", 0xC)):
            store.append(keyed(body, "k", sys_flag=sys_flag))
        assert found(store, "k") == [b"committed", b"prepared"]

    run(check())


def test_files_of_another_size_are_left_alone() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        disk.make_directory(f"{ROOT}/index")
        disk.replace(f"{ROOT}/index/20230101000000000", b"x" * 100)
        disk.replace(f"{ROOT}/index/notes", b"y")
        store = await opened(disk)
        store.append(keyed(b"1", "k"))
        assert found(store, "k") == [b"1"]
        await store.close()
        assert disk.read(f"{ROOT}/index/20230101000000000") == b"x" * 100
        assert disk.read(f"{ROOT}/index/notes") == b"y"

    run(check())


def test_without_an_index_nothing_is_found_and_nothing_is_made() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        config = StoreConfig(log_file_bytes=2048, queue_file_bytes=160, index_keys=False)
        store = await opened(disk, config=config)
        store.append(keyed(b"1", "k"))
        assert found(store, "k") == []
        await store.close()
        assert disk.names(f"{ROOT}/index") == []

    run(check())


def test_files_whose_messages_are_gone_go_too() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(100):
            store.append(keyed(b"%d" % n, f"k{n}"))
        await store.close()
        for name in disk.names(f"{ROOT}/commitlog")[:3]:
            disk.remove(f"{ROOT}/commitlog/{name}")
        before = disk.names(f"{ROOT}/index")
        store = await opened(disk, config=SMALL)
        after = disk.names(f"{ROOT}/index")
        assert set(after) < set(before)
        low = store.min_offset("orders", 0)
        assert [len(found(store, f"k{n}")) for n in range(100)] == [
            int(n >= low) for n in range(100)
        ]

    run(check())


class HoleFile(MemoryMappedFile):
    """A file of which nothing may be read before it has room."""

    __slots__ = ("reserved",)

    def __init__(self, path: str, file: Any, disk: MemoryDisk) -> None:
        super().__init__(path, file, disk)
        self.reserved = 0

    def reserve(self, start: int, end: int) -> None:
        super().reserve(start, end)
        self.reserved = max(self.reserved, end)

    @property
    def buffer(self) -> memoryview:
        assert self.reserved, "on some file systems a full disk ends the process here"
        return super().buffer


class HoleDisk(FaultyDisk):
    """A disk whose new index files are such files."""

    def map(self, path: str, size: int) -> MemoryMappedFile:
        file = super().map(path, size)
        return HoleFile(path, self._files[path], self) if "/index/" in path else file


def test_a_new_file_is_read_when_it_has_room_and_is_gone_if_there_is_none() -> None:
    async def check() -> None:
        disk = HoleDisk()
        store = await opened(disk)
        store.append(keyed(b"0"))
        disk.fail("zero", errno.ENOSPC, times=99)
        with pytest.raises(DiskFull, match="no room for"):
            store._index._make_file()
        assert disk.names(f"{ROOT}/index") == []
        disk.fail("zero", times=0)
        store.append(keyed(b"1", "a"))
        assert found(store, "a") == [b"1"]

    run(check())


def test_an_index_with_nothing_to_add_waits_without_a_timer() -> None:
    timers = []

    async def main(network: Network) -> None:
        index = KeyIndex(MemoryDisk(), LoopClock(), directory="/index", slots=10, entries=40)
        running = asyncio.ensure_future(index.run())
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        call_at = loop.call_at
        loop.call_at = lambda *a, **k: timers.append(a) or call_at(*a, **k)  # type: ignore[method-assign]
        await asyncio.sleep(60)
        running.cancel()

    simulate(main)
    assert len(timers) == 1, "the test's own"


def test_records_are_added_soon_after_a_rest() -> None:
    async def main(network: Network) -> None:
        store = await opened(MemoryDisk())
        work = asyncio.ensure_future(store.run())
        for number in range(3):
            await asyncio.sleep(10)
            store.append(keyed(b"1", "a", f"ID{number}"))
            await asyncio.sleep(0.2)
            (entries,) = (count for count, _ in store._index.noted.values())
            assert entries == 2 * (number + 1)
        work.cancel()

    simulate(main)
