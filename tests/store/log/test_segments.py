"""Rows of mapped files."""

from __future__ import annotations

import errno

import pytest

from sprocket.base.errors import ConfigError, DiskFull, OffsetOutOfRange, StoreError
from sprocket.store.log.segments import OddFile, Segments, shows_other_size
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.support import run


def row(disk: MemoryDisk, file_bytes: int = 100) -> Segments:
    found = Segments(disk, "/log", file_bytes, setting="mappedFileSizeCommitLog")
    found.load()
    return found


def test_files_are_named_after_their_first_offset() -> None:
    disk = MemoryDisk()
    files = row(disk)
    assert (files.start, files.limit) == (0, 0)
    for offset in (0, 100, 299):
        files.make(offset)
    assert disk.names("/log") == [f"{n:020d}" for n in (0, 100, 200)]
    assert (files.start, files.limit) == (0, 300)
    assert files.at(250).start == 200


def test_what_was_written_is_there_after_a_restart() -> None:
    disk = MemoryDisk()
    row(disk).make(100).buffer[5:8] = b"abc"
    again = row(disk)
    assert again.starts == [100]
    assert bytes(again.at(150).buffer[5:8]) == b"abc"


def test_offsets_without_a_file_are_out_of_range() -> None:
    files = row(MemoryDisk())
    files.make(100)
    for offset in (0, 99, 200):
        assert not files.has(offset)
        with pytest.raises(OffsetOutOfRange):
            files.at(offset)


def test_other_names_are_left_alone() -> None:
    disk = MemoryDisk()
    disk.make_directory("/log")
    for name in ("readme", "1", "0" * 19, "0" * 21, "-" + "0" * 19, "²" * 20):
        disk.replace(f"/log/{name}", b"x")
    assert row(disk).starts == []
    assert len(disk.names("/log")) == 6


def test_an_empty_file_left_by_a_crash_is_removed() -> None:
    disk = MemoryDisk()
    row(disk).make(0)
    disk.replace(f"/log/{100:020d}", b"")
    assert row(disk).starts == [0]
    assert disk.names("/log") == [f"{0:020d}"]


def test_a_file_of_another_size_is_named_with_the_setting() -> None:
    disk = MemoryDisk()
    row(disk).make(0)
    other = row(disk, 64)
    assert shows_other_size(other.odd, has_right=False)
    with pytest.raises(
        ConfigError, match=r"0{20} has 100 bytes, but mappedFileSizeCommitLog is 64"
    ):
        other.refuse(other.odd[0])


@pytest.mark.parametrize(
    ("sizes", "has_right", "unit", "is_changed"),
    [
        ({0: 200}, False, 1, True),
        ({0: 200, 200: 200, 400: 200}, False, 20, True),
        ({0: 200}, True, 1, False),
        ({0: 200, 200: 100}, False, 1, False),
        ({0: 37}, False, 20, False),
        ({100: 200}, False, 1, False),
    ],
)
def test_a_changed_setting_and_a_cut_file_are_told_apart(
    sizes: dict[int, int], has_right: bool, unit: int, is_changed: bool
) -> None:
    odd = [OddFile(f"/log/{start}", start, size) for start, size in sizes.items()]
    assert shows_other_size(odd, has_right=has_right, unit=unit) is is_changed


def test_a_full_disk_and_a_broken_one_are_told_apart() -> None:
    disk = FaultyDisk()
    files = row(disk)
    disk.fail("map", errno.ENOSPC)
    with pytest.raises(DiskFull):
        files.make(0)
    disk.fail("map", errno.EACCES)
    with pytest.raises(StoreError) as failed:
        files.make(0)
    assert not isinstance(failed.value, DiskFull)
    assert files.starts == []
    assert files.make(0).end == 100


def test_slices_outlive_their_file() -> None:
    files = row(MemoryDisk())
    segment = files.make(0)
    segment.buffer[:3] = b"abc"
    kept = segment.buffer[:3]
    files.make(100)
    files.remove_before(100)
    assert files.starts == [100]
    assert bytes(kept) == b"abc"


def test_resting_files_come_back_when_they_are_needed() -> None:
    files = row(MemoryDisk())
    files.make(0).buffer[:3] = b"abc"
    files.unmap_all()
    assert bytes(files.at(0).buffer[:3]) == b"abc"
    files.close()
    with pytest.raises(OffsetOutOfRange):
        files.at(0)


def test_clearing_leaves_no_byte_and_no_other_is_touched() -> None:
    files = row(MemoryDisk(), 300_000)
    files.make(0)
    segment = files.make(300_000)
    segment.buffer[:] = b"x" * 300_000
    segment.clear(300_011, 500_000)
    assert bytes(segment.buffer) == b"x" * 11 + bytes(199_989) + b"x" * 100_000


def test_only_what_was_synced_outlives_a_power_loss() -> None:
    disk = FaultyDisk(seed=3)
    files = row(disk, 4096)
    files.make(0).buffer[:4] = b"abcd"
    files.make(4096).buffer[:4] = b"efgh"
    run(files.sync(2, 4100))
    later = row(disk.after_power_loss(), 4096)
    assert bytes(later.at(0).buffer[:4]) == b"abcd"
    assert bytes(later.at(4096).buffer[:4]) == b"efgh"
