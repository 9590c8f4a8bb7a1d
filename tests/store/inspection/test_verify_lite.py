"""Damage of the shared queue of lite topics: it is found, and repaired by building it anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprocket.message.lite import LiteName
from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.inspection.repair import Repair
from sprocket.store.inspection.verify import Verification
from sprocket.store.views.consume_queue import ENTRY, ENTRY_BYTES
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, opened
from tests.support import run

FILE = f"{ROOT}/litequeue/0/{0:020d}"
NAMES = [LiteName("chats", lite) for lite in "abc"]


async def filled(disk: MemoryDisk) -> None:
    store = await opened(disk)
    for number in range(7):
        store.lite.append(a_draft(b"%d" % number, topic="chats"), NAMES[number % 3])
    await store.close()


def faults(disk: MemoryDisk) -> list[Finding]:
    found = Verification(InspectedStore(disk, ROOT, SMALL)).findings()
    return [each for each in found if each.is_fault]


def entry(buffer: memoryview, number: int) -> tuple[int, int, int]:
    found: tuple[int, int, int] = ENTRY.unpack_from(buffer, number * ENTRY_BYTES)
    return found


def put(buffer: memoryview, number: int, *values: int) -> None:
    ENTRY.pack_into(buffer, number * ENTRY_BYTES, *values)


def wrong_place(buffer: memoryview) -> None:
    log_offset, size, before = entry(buffer, 4)
    put(buffer, 4, log_offset + 1, size, before)


def wrong_way(buffer: memoryview) -> None:
    log_offset, size, _ = entry(buffer, 4)
    put(buffer, 4, log_offset, size, 3)


def lost_end(buffer: memoryview) -> None:
    put(buffer, 6, 0, 0, 0)


@pytest.mark.parametrize("damage", [wrong_place, wrong_way, lost_end])
def test_a_damaged_entry_is_found_and_repaired(damage: Callable[[memoryview], None]) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        await filled(disk)
        assert faults(disk) == []
        damage(disk.map(FILE, disk.size(FILE) or 0).buffer)
        (found,) = faults(disk)
        assert (found.what, found.path) == ("queue", FILE)
        assert found.position in (4 * ENTRY_BYTES, 0)
        for step in Repair(InspectedStore(disk, ROOT, SMALL), 0).rebuild_views():
            await step.do()
        store = await opened(disk)
        assert [store.lite.max_offset(name) for name in NAMES] == [3, 2, 2]
        await store.close()
        assert faults(disk) == []

    run(check())
