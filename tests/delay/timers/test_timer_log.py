"""The timer log: what was appended is read again, over the borders of its files."""

from __future__ import annotations

import struct

import pytest

from sprocket.base.errors import ConfigError, OffsetOutOfRange
from sprocket.delay.timers.timer_log import (
    NORMAL,
    RECALLS,
    ROLLS,
    UNIT,
    UNIT_BYTES,
    TimerLog,
    TimerUnit,
)
from sprocket.testing.disk import MemoryDisk

FILE_BYTES = 4096


def opened(disk: MemoryDisk) -> TimerLog:
    log = TimerLog(disk, "/timerlog", FILE_BYTES)
    log.load()
    return log


def unit(number: int, previous: int = -1) -> TimerUnit:
    return TimerUnit(
        previous, NORMAL, 1000 * number, 1000 * number + 5000, number, 91, -7, number + 1
    )


def append(log: TimerLog, made: TimerUnit) -> int:
    delay_ms = made.slot_ms - made.written_ms
    return log.append(made.previous, (made.magic, made.written_ms, delay_ms, *made[4:]))


def filled(count: int) -> tuple[MemoryDisk, TimerLog, list[int]]:
    disk = MemoryDisk()
    log = opened(disk)
    positions: list[int] = []
    for number in range(count):
        positions.append(append(log, unit(number, positions[-1] if positions else -1)))
    return disk, log, positions


def test_a_unit_has_javas_bytes() -> None:
    disk, _, _ = filled(1)
    raw = disk.peek("/timerlog/" + "0" * 20)
    expected = struct.pack(">iqiqiqiiq", 52, -1, 1, 0, 5000, 0, 91, -7, 1)
    assert bytes(raw[:UNIT_BYTES]) == expected


def test_units_are_read_over_the_borders_of_files() -> None:
    _, log, positions = filled(300)
    assert [log.read(position) for position in positions] == [
        unit(n, positions[n - 1] if n else -1) for n in range(300)
    ]
    assert [position for position, _ in log.scan(0)] == positions
    assert all(position // FILE_BYTES == (position + 67) // FILE_BYTES for position in positions)


def test_the_rest_of_a_full_file_is_marked_blank_as_java_marks_it() -> None:
    disk, _, positions = filled(79)
    first = disk.peek("/timerlog/" + "0" * 20)
    end = positions[77] + UNIT_BYTES
    assert positions[78] == FILE_BYTES
    assert struct.unpack_from(">iqi", first[:], end) == (FILE_BYTES - end, 0, -875286124)


def test_a_log_that_is_opened_again_goes_on_behind_its_last_unit() -> None:
    disk, log, positions = filled(100)
    log.close()
    again = opened(disk)
    assert [position for position, _ in again.scan(0)] == positions
    again.cut(positions[-1] + UNIT_BYTES)
    assert append(again, unit(100)) == positions[-1] + UNIT_BYTES


def test_what_was_cut_is_gone_for_good() -> None:
    disk, log, positions = filled(200)
    log.cut(positions[50])
    with pytest.raises(OffsetOutOfRange):
        log.read(positions[50])
    log.close()
    assert [position for position, _ in opened(disk).scan(0)] == positions[:50]


@pytest.mark.parametrize("position", [-1, 26, 300 * 52, 10**9])
def test_where_no_unit_stands_none_is_read(position: int) -> None:
    _, log, _ = filled(100)
    with pytest.raises(OffsetOutOfRange):
        log.read(position)


def test_a_unit_that_points_forwards_is_none() -> None:
    disk, log, positions = filled(3)
    raw = disk.map("/timerlog/" + "0" * 20, FILE_BYTES).buffer
    UNIT.pack_into(raw, positions[1], 52, 104, 1, 0, 0, 0, 91, 0, 0)
    with pytest.raises(OffsetOutOfRange):
        log.read(positions[1])


def test_files_go_with_the_messages_that_they_name() -> None:
    _, log, positions = filled(300)
    log.forget_before(100)
    assert log.start == FILE_BYTES
    assert log.read(positions[100]).log_offset == 100
    log.forget_before(10**9)
    assert log.read(positions[299]).log_offset == 299


def test_another_file_size_is_said() -> None:
    disk, log, _ = filled(1)
    log.close()
    with pytest.raises(ConfigError, match="mappedFileSizeTimerLog"):
        TimerLog(disk, "/timerlog", 2 * FILE_BYTES).load()


def test_kinds_of_units() -> None:
    plain, far = unit(0), unit(0)._replace(magic=NORMAL | ROLLS)
    recall = unit(0)._replace(magic=NORMAL | RECALLS)
    far_recall = unit(0)._replace(magic=NORMAL | ROLLS | RECALLS)
    assert [u.adds for u in (plain, far, recall, far_recall)] == [1, 1, -1, -1]
    assert [u.rolls for u in (plain, far, recall, far_recall)] == [False, True, False, True]
    assert [u.is_recall for u in (plain, far, recall, far_recall)] == [False, False, True, False]


@pytest.mark.parametrize(("at", "size"), [(0, 33), (1, 33), (2, 1000), (1, None), (2, None)])
def test_files_from_one_on_that_is_cut_or_gone_are_removed(at: int, size: int | None) -> None:
    disk, log, positions = filled(200)
    log.close()
    path = f"/timerlog/{at * FILE_BYTES:020d}"
    content = disk.read(path) or b""
    disk.remove(path)
    if size is not None:
        disk.replace(path, content[:size])
    again = opened(disk)
    assert again.limit == at * FILE_BYTES
    kept = [position for position, _ in again.scan(0)]
    assert kept == [position for position in positions if position < at * FILE_BYTES]


def test_another_size_of_all_files_is_refused() -> None:
    disk, log, _ = filled(200)
    log.close()
    with pytest.raises(ConfigError, match="mappedFileSizeTimerLog is 8192"):
        TimerLog(disk, "/timerlog", 2 * FILE_BYTES).load()
