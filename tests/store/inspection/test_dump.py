"""Records out of a store that nobody opens."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.message.record import Record
from sprocket.store.inspection.dump import DumpSelection, dump
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.log.damage import Damage
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, opened
from tests.support import run


@pytest.fixture
def disk() -> MemoryDisk:
    made = MemoryDisk()
    store = run(opened(made))
    for n in range(40):
        store.append(a_draft(b"%d" % n, topic=f"t{n % 2}", queue_number=n // 2 % 2))
    run(store.close())
    return made


def bodies(disk: MemoryDisk, chosen: DumpSelection) -> list[int]:
    found = dump(InspectedStore(disk, ROOT, SMALL), chosen)
    return [int(bytes(each.body)) for each in found if isinstance(each, Record)]


def test_all_or_a_topic_or_a_queue(disk: MemoryDisk) -> None:
    assert bodies(disk, DumpSelection()) == list(range(40))
    assert bodies(disk, DumpSelection("t1")) == list(range(1, 40, 2))
    assert bodies(disk, DumpSelection("t1", 0)) == list(range(1, 40, 4))


def test_a_range_of_log_offsets_or_of_a_queue(disk: MemoryDisk) -> None:
    records = list(dump(InspectedStore(disk, ROOT, SMALL), DumpSelection()))
    places = [each.log_offset for each in records if isinstance(each, Record)]
    assert bodies(disk, DumpSelection(begin=places[3], end=places[7])) == [3, 4, 5, 6]
    assert bodies(disk, DumpSelection("t1", 0, begin=2, end=9)) == list(range(9, 37, 4))
    assert bodies(disk, DumpSelection("t1", 0, begin=99)) == []


def test_damage_is_shown_where_it_is(disk: MemoryDisk) -> None:
    records = list(dump(InspectedStore(disk, ROOT, SMALL), DumpSelection()))
    broken = records[4]
    assert isinstance(broken, Record)
    start = broken.log_offset
    disk.map(f"{ROOT}/commitlog/{0:020d}", 2048).buffer[start + 88] ^= 1
    for chosen in (DumpSelection(), DumpSelection("t0", 0)):
        found = [
            e for e in dump(InspectedStore(disk, ROOT, SMALL), chosen) if isinstance(e, Damage)
        ]
        assert [(each.start, each.end) for each in found] == [(start, start + broken.size)]


def test_a_queue_that_is_not_there_is_said_to_be(disk: MemoryDisk) -> None:
    with pytest.raises(UsageError, match="no queue 7 of topic t0"):
        bodies(disk, DumpSelection("t0", 7))
    with pytest.raises(UsageError, match="topic"):
        bodies(disk, DumpSelection(queue_number=0))
