"""Mending a store: what was chosen is done, nothing else is lost, what goes is kept aside."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import DamagedLog, StoreError, UsageError
from sprocket.message.record import Record
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.repair import FILLER_TOPIC, Repair, RepairStep
from sprocket.store.inspection.verify import Verification
from sprocket.store.inspection.walk import LogTail, walk
from sprocket.store.log.damage import Damage
from sprocket.store.store import Store
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

FILE = SMALL.log_file_bytes
LOG = f"{ROOT}/commitlog"
COUNT = 60
KEPT = f"{ROOT}/removed/20240101T000000"


async def made(disk: MemoryDisk) -> list[int]:
    """A stopped store; the log offsets of its messages."""
    store = await opened(disk)
    places = []
    for n in range(COUNT):
        properties = f"TAGS\x01a\x02KEYS\x01k{n}\x02".encode()
        draft = a_draft(b"%d" % n, queue_number=n % 2, properties=properties, keys=f"k{n}")
        places.append(int(store.append(draft).log_offset))
    await store.close()
    return places


def repair(disk: MemoryDisk) -> Repair:
    return Repair(InspectedStore(disk, ROOT, SMALL), EPOCH_MS)


async def carry_out(steps: list[RepairStep]) -> None:
    for step in steps:
        assert step.text
        await step.do()


def flip(disk: MemoryDisk, log_offset: int) -> None:
    start = log_offset - log_offset % FILE
    disk.map(f"{LOG}/{start:020d}", FILE).buffer[log_offset - start] ^= 1


def faults(disk: MemoryDisk) -> list[str]:
    look = Verification(InspectedStore(disk, ROOT, SMALL))
    return [str(finding) for finding in look.findings() if finding.is_fault]


def both(store: Store) -> list[bytes]:
    return sorted(bodies(store, number=0) + bodies(store, number=1), key=int)


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_damage_is_passed_over_and_all_else_keeps_its_place(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        places = await made(disk)
        if not stop:
            disk.replace(f"{ROOT}/abort", b"", backup=False)
        for n in (5, 6, 30):
            flip(disk, places[n] + 88)
        last_of_file = max(n for n in range(COUNT) if places[n] < 2 * FILE)
        flip(disk, places[last_of_file] + 4)
        lost = {5, 6, 30, last_of_file}
        before = {n: bytes(disk.read(f"{LOG}/{0:020d}") or b"") for n in (0,)}
        steps = repair(disk).skip_damaged()
        assert disk.read(f"{LOG}/{0:020d}") == before[0], "planning changes nothing"
        await carry_out(steps)
        assert faults(disk) == []
        store = await opened(disk)
        assert both(store) == [b"%d" % n for n in range(COUNT) if n not in lost]
        assert store.max_offset("orders", 0) == COUNT // 2
        for n in (4, 7):
            read = store.read("orders", n % 2, n // 2, count_max=1, bytes_max=999)
            assert read.count == 1
        read = store.read("orders", 1, 5 // 2, count_max=1, bytes_max=999)
        assert (read.count, read.next_offset) == (0, 3)
        assert store.append(a_draft(b"60")).queue_offset == COUNT // 2
        assert disk.names(f"{KEPT}/commitlog") == [
            f"{places[n]:020d}.part" for n in sorted({5, 30, last_of_file})
        ]

    run(check())


def test_what_stands_in_for_damage_is_a_record_of_nobody() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        places = await made(disk)
        flip(disk, places[5])
        await carry_out(repair(disk).skip_damaged())
        fillers = [
            each
            for each in walk(InspectedStore(disk, ROOT, SMALL).log)
            if isinstance(each, Record) and each.topic == FILLER_TOPIC
        ]
        assert [(f.log_offset, f.sys_flag) for f in fillers] == [(places[5], 0xC)]
        for path in [path for path in disk._files if "/consumequeue/" in path]:
            disk.remove(path)
        store = await opened(disk)
        assert list(store.queues()) == ["orders"]
        assert both(store) == [b"%d" % n for n in range(COUNT) if n != 5]
        assert store.max_offset("orders", 1) == COUNT // 2

    run(check())


def test_missing_and_emptied_files_are_passed_over() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        places = await made(disk)
        disk.remove(f"{LOG}/{2048:020d}")
        with pytest.raises(DamagedLog):
            await opened(disk)
        await carry_out(repair(disk).skip_damaged())
        assert faults(disk) == []
        store = await opened(disk)
        kept = [n for n in range(COUNT) if not 2048 <= places[n] < 4096]
        assert both(store) == [b"%d" % n for n in kept]

    run(check())


def test_the_log_is_cut_where_it_is_said() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        places = await made(disk)
        flip(disk, places[30] + 88)
        behind = disk.read(f"{LOG}/{places[30] // FILE * FILE:020d}") or b""
        await carry_out(repair(disk).cut_at(places[30]))
        assert [fault for fault in faults(disk) if "leads to" not in fault] == []
        store = await opened(disk)
        assert both(store) == [b"%d" % n for n in range(30)]
        assert store.log_end == places[30]
        assert store.append(a_draft(b"30")).queue_offset == 15
        await store.close()
        assert faults(disk) == []
        part, *files = disk.names(f"{KEPT}/commitlog")
        assert part == f"{places[30]:020d}.part"
        content = disk.read(f"{KEPT}/commitlog/{part}") or b""
        assert behind[places[30] % FILE :].startswith(content)
        assert files == [f"{n * FILE:020d}" for n in range(2, 2 + len(files))]

    run(check())


def test_a_cut_where_the_log_ends_takes_short_files_behind_it_away_or_does_nothing() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        await made(disk)
        await (await opened(disk)).close()
        end = InspectedStore(disk, ROOT, SMALL).log
        tail = next(each for each in walk(end) if isinstance(each, LogTail)).end
        assert repair(disk).cut_at(tail) == []
        short = f"{LOG}/{(tail // FILE + 1) * FILE:020d}"
        disk.replace(short, b"x" * 1000)
        await carry_out(repair(disk).cut_at(tail))
        assert disk.size(short) is None
        assert short.rpartition("/")[2] in disk.names(f"{KEPT}/commitlog")
        disk.replace(f"{LOG}/{FILE:020d}", b"x" * 1000)
        with pytest.raises(StoreError, match="another size"):
            repair(disk).cut_at(tail)

    run(check())


def test_the_log_is_not_cut_inside_a_message() -> None:
    disk = MemoryDisk()
    places = run(made(disk))
    with pytest.raises(UsageError, match="neither a message nor damage begins"):
        repair(disk).cut_at(places[3] + 1)
    with pytest.raises(UsageError):
        repair(disk).cut_at(1 << 40)


def test_views_are_built_anew_from_the_log_alone() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        await made(disk)
        disk.replace(f"{ROOT}/checkpoint", b"broken", backup=False)
        await carry_out(repair(disk).rebuild_views())
        assert disk.names(KEPT) == ["checkpoint", "consumequeue", "index"]
        store = await opened(disk)
        assert both(store) == [b"%d" % n for n in range(COUNT)]
        assert len(store.find("orders", "k7", count_max=9)) == 1
        await store.close()
        assert faults(disk) == []

    run(check())


def test_a_file_of_another_size_must_be_taken_away_first() -> None:
    disk = MemoryDisk()
    run(made(disk))
    disk.replace(f"{LOG}/{2048:020d}", b"x", backup=False)
    with pytest.raises(StoreError, match="another size"):
        repair(disk).skip_damaged()


def test_a_whole_store_needs_nothing() -> None:
    disk = MemoryDisk()
    run(made(disk))
    assert repair(disk).skip_damaged() == []


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_whatever_was_damaged_the_store_opens_with_all_that_was_whole(seed: int) -> None:
    async def check() -> None:
        choice = random.Random(seed)
        disk = MemoryDisk()
        places = await made(disk)
        for _ in range(choice.randrange(1, 6)):
            n = choice.randrange(COUNT - 1)
            end = places[n + 1]
            broken = {
                "magic": [places[n] + 4],
                "body": [places[n] + 88],
                "size": [places[n]],
                "much": [at for at in range(places[n], end) if choice.random() < 0.5],
            }[choice.choice(["magic", "body", "size", "much"])]
            for at in {places[n] + 5, *broken} if len(broken) > 1 else broken:
                flip(disk, at)
        whole = {
            int(bytes(each.body))
            for each in walk(InspectedStore(disk, ROOT, SMALL).log)
            if isinstance(each, Record)
        }
        await carry_out(repair(disk).skip_damaged())
        again = list(walk(InspectedStore(disk, ROOT, SMALL).log))
        assert not [each for each in again if isinstance(each, Damage)]
        store = await opened(disk)
        assert {int(body) for body in both(store)} == whole

    run(check())
