"""A walk through a log: every record once, and every stretch that is none."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.message.record import Record
from sprocket.store.inspection.walk import LogFiles, LogTail, walk
from sprocket.store.log.damage import Damage
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, opened
from tests.support import run

FILE = SMALL.log_file_bytes
LOG = f"{ROOT}/commitlog"


def filled(count: int = 60) -> tuple[MemoryDisk, list[int]]:
    disk = MemoryDisk()
    store = run(opened(disk))
    places = [int(store.append(a_draft(b"%d" % n)).log_offset) for n in range(count)]
    return disk, places


def walked(disk: MemoryDisk) -> tuple[list[int], list[Damage], LogTail]:
    *found, tail = walk(LogFiles(disk, [LOG]))
    assert isinstance(tail, LogTail)
    records = [each.log_offset for each in found if isinstance(each, Record)]
    return records, [each for each in found if isinstance(each, Damage)], tail


def test_all_records_come_and_the_end() -> None:
    disk, places = filled()
    records, damage, tail = walked(disk)
    assert (records, damage) == (places, [])
    assert tail.end > places[-1]
    assert tail.rest_bytes == 0


def test_nothing_is_behind_an_empty_folder() -> None:
    assert walked(MemoryDisk()) == ([], [], LogTail(f"{LOG}/{0:020d}", 0, 0, 0, ""))


def test_files_that_are_missing_are_told_one_by_one() -> None:
    disk, places = filled()
    for start in (2048, 4096):
        disk.remove(f"{LOG}/{start:020d}")
    records, damage, _ = walked(disk)
    assert records == [place for place in places if not 2048 <= place < 6144]
    assert [(each.start, each.end) for each in damage] == [(2048, 4096), (4096, 6144)]


def test_a_broken_end_of_one_file_and_a_broken_head_of_the_next_are_two() -> None:
    disk, places = filled()
    last = max(place for place in places if place < 2048)
    first = min(place for place in places if place >= 2048)
    for place in (last, first):
        start = place - place % FILE
        disk.map(f"{LOG}/{start:020d}", FILE).buffer[place - start + 4] ^= 1
    records, damage, _ = walked(disk)
    assert records == [place for place in places if place not in (last, first)]
    assert [each.start for each in damage] == [last, first]
    assert damage[0].end == 2048


def test_files_that_a_broker_removes_meanwhile_are_no_damage() -> None:
    disk, places = filled()
    files = LogFiles(disk, [LOG])
    disk.remove(f"{LOG}/{0:020d}")
    found = list(walk(files))
    assert not [each for each in found if isinstance(each, Damage)]
    records = [each.log_offset for each in found if isinstance(each, Record)]
    assert records == [place for place in places if place >= FILE]


def test_looking_can_end_at_a_log_offset() -> None:
    disk, places = filled()
    found = list(walk(LogFiles(disk, [LOG]), until=places[20]))
    assert [each.log_offset for each in found[:-1]] == places[:20]  # type: ignore[union-attr]
    assert isinstance(found[-1], LogTail)
    assert found[-1].end == places[20]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30), holes=st.integers(1, 6))
def test_whatever_is_broken_all_else_is_found_once_and_nothing_overlaps(
    seed: int, holes: int
) -> None:
    choice = random.Random(seed)
    disk, places = filled()
    limit = (places[-1] // FILE + 1) * FILE
    broken = [(at := choice.randrange(limit), at + choice.randrange(1, 200)) for _ in range(holes)]
    for first, last in broken:
        for at in range(first, min(last, limit)):
            start = at - at % FILE
            disk.map(f"{LOG}/{start:020d}", FILE).buffer[at - start] = choice.randrange(256)
    records, damage, tail = walked(disk)
    ends = [*places[1:], tail.end if tail.end > places[-1] else limit]
    untouched = [
        place
        for place, end in zip(places, ends, strict=True)
        if all(last <= place or first >= end for first, last in broken)
    ]
    assert set(untouched) <= set(records)
    at = 0
    for start, end in sorted([(each.start, each.end) for each in damage]):
        assert at <= start < end
        assert not [place for place in records if start <= place < end]
        at = end
    assert all(each.position == each.start % FILE for each in damage)
