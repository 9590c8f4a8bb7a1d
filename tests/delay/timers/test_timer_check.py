"""How far the timers are, in Java's file, with what Java does not write beside it."""

from __future__ import annotations

import struct

from sprocket.delay.timers.timer_check import FILE_BYTES, TimerCheck, TimerProgress
from sprocket.testing.disk import MemoryDisk
from tests.support import run

PATH = "/config/timercheck"
PROGRESS = TimerProgress(5000, 520, 7, 900, 6, is_clean=True)


def saved(progress: TimerProgress = PROGRESS) -> MemoryDisk:
    disk = MemoryDisk()
    check = TimerCheck(disk, PATH)
    check.open()
    assert check.read() is None
    run(check.save(progress, 1234))
    check.close()
    return disk


def reading(disk: MemoryDisk) -> TimerProgress | None:
    check = TimerCheck(disk, PATH)
    check.open()
    return check.read()


def test_what_was_saved_is_read() -> None:
    assert reading(saved()) == PROGRESS
    for is_clean in (False, True):
        for has_replaced in (False, True):
            progress = PROGRESS._replace(is_clean=is_clean, has_replaced=has_replaced)
            assert reading(saved(progress)) == progress


def test_java_finds_its_numbers_where_it_looks() -> None:
    disk = saved()
    numbers = struct.unpack_from(">7q", disk.peek(PATH)[:56])
    assert numbers == (5000, 520, 7, 7, 0, 1234, 1)
    assert disk.size(PATH) == FILE_BYTES


def test_what_java_wrote_in_between_counts_and_ours_does_not() -> None:
    disk = saved()
    struct.pack_into(">qqqq", disk.map(PATH, FILE_BYTES).buffer, 0, 8000, 1040, 9, 9)
    assert reading(disk) == TimerProgress(8000, 1040, 9, is_ours=False)


def test_a_file_of_another_size_or_with_impossible_numbers_says_nothing() -> None:
    disk = MemoryDisk()
    disk.make_directory("/config")
    disk.replace(PATH, b"x" * 10)
    assert reading(disk) is None  # and is made anew
    struct.pack_into(">qqqq", disk.map(PATH, FILE_BYTES).buffer, 0, -8000, 1040, 9, 9)
    assert reading(disk) is None
