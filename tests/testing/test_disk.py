"""What every disk must do, real or not; and what crashes leave of the ones in memory."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import DirectoryInUse
from sprocket.base.ports import Disk
from sprocket.runtime.disk import SystemDisk
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.disk_content import SECTOR_BYTES
from tests.support import run


@pytest.fixture(params=[SystemDisk, MemoryDisk, FaultyDisk])
def disk(request: pytest.FixtureRequest) -> Disk:
    made: Disk = request.param()
    return made


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    disk.make_directory(path)
    return path


def test_a_new_mapped_file_is_zero_and_keeps_what_is_written(disk: Disk, root: str) -> None:
    file = disk.map(f"{root}/00", 4096)
    assert bytes(file.buffer) == bytes(4096)
    file.buffer[10:13] = b"abc"
    run(file.sync(0, 4096))
    file.close()
    again = disk.map(f"{root}/00", 4096)
    assert bytes(again.buffer[9:14]) == b"\0abc\0"
    assert disk.read(f"{root}/00") == bytes(again.buffer)
    assert disk.size(f"{root}/00") == 4096
    again.close()


def test_a_file_of_another_size_is_refused(disk: Disk, root: str) -> None:
    disk.map(f"{root}/00", 4096).close()
    with pytest.raises(OSError, match="expected 8192"):
        disk.map(f"{root}/00", 8192)


def test_an_empty_file_counts_as_missing(disk: Disk, root: str) -> None:
    disk.replace(f"{root}/00", b"")
    file = disk.map(f"{root}/00", 4096)
    assert bytes(file.buffer) == bytes(4096)
    file.close()


def test_slices_outlive_the_closing(disk: Disk, root: str) -> None:
    file = disk.map(f"{root}/00", 4096)
    file.buffer[:4] = b"kept"
    part = file.buffer[:4]
    file.close()
    assert bytes(part) == b"kept"


def test_nothing_is_made_in_a_folder_that_is_not_there(disk: Disk, root: str) -> None:
    with pytest.raises(FileNotFoundError):
        disk.map(f"{root}/no/00", 4096)
    with pytest.raises(FileNotFoundError):
        disk.replace(f"{root}/no/x", b"")


def test_names_are_sorted_and_missing_things_are_no_errors(disk: Disk, root: str) -> None:
    disk.make_directory(f"{root}/b/c")
    disk.make_directory(f"{root}/b")
    disk.replace(f"{root}/a", b"1")
    disk.replace(f"{root}/c", b"1")
    assert disk.names(root) == ["a", "b", "c"]
    disk.remove(f"{root}/a")
    disk.remove(f"{root}/a")
    assert disk.names(root) == ["b", "c"]
    assert disk.names(f"{root}/none") == []
    assert disk.read(f"{root}/none") is None
    assert disk.size(f"{root}/none") is None


def test_replacing_keeps_the_version_before(disk: Disk, root: str) -> None:
    disk.replace(f"{root}/state", b"one")
    assert disk.read(f"{root}/state.bak") is None
    disk.replace(f"{root}/state", b"two")
    disk.replace(f"{root}/state", b"three", backup=False)
    assert disk.read(f"{root}/state") == b"three"
    assert disk.read(f"{root}/state.bak") == b"one"


def test_a_folder_has_one_owner(disk: Disk, root: str) -> None:
    lock = disk.lock(root)
    with pytest.raises(DirectoryInUse, match="in use"):
        disk.lock(root)
    lock.release()
    disk.lock(root).release()


def test_a_kill_keeps_what_was_written_and_ends_the_lock() -> None:
    disk = MemoryDisk()
    file = disk.map("/00", 1024)
    disk.lock("/")
    file.buffer[:3] = b"abc"
    after = disk.after_kill()
    file.buffer[:3] = b"xyz"
    disk.replace("/ghost", b"")
    assert (after.read("/00") or b"")[:3] == b"abc"
    assert after.names("/") == ["00"]
    after.lock("/")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.lists(st.tuples(st.integers(0, 15), st.booleans()), max_size=30))
def test_a_loss_of_power_keeps_synced_sectors_and_makes_nothing_up(
    seed: int, writes: list[tuple[int, bool]]
) -> None:
    disk = FaultyDisk(seed)
    file = disk.map("/00", 16 * SECTOR_BYTES)
    synced, written = [0] * 16, [{0} for _ in range(16)]
    run(file.sync(0, 1))
    for value, (sector, is_synced) in enumerate(writes, 1):
        start = sector * SECTOR_BYTES
        file.buffer[start : start + SECTOR_BYTES] = bytes([value]) * SECTOR_BYTES
        written[sector].add(value)
        if is_synced:
            run(file.sync(start, start + SECTOR_BYTES))
            synced[sector], written[sector] = value, {value}
    found = disk.after_power_loss().read("/00")
    assert found is not None
    for sector in range(16):
        part = found[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
        assert len(set(part)) == 1
        assert part[0] in written[sector]


def test_a_loss_of_power_is_decided_by_the_seed() -> None:
    def left(seed: int) -> bytes | None:
        disk = FaultyDisk(seed)
        disk.map("/00", 64 * SECTOR_BYTES).buffer[:] = b"x" * 64 * SECTOR_BYTES
        return disk.after_power_loss().read("/00")

    assert left(1) == left(1)
    assert len({left(seed) for seed in range(8)}) > 2
    assert any(left(seed) is None for seed in range(8))


def test_a_disk_fails_as_often_as_it_was_told() -> None:
    disk = FaultyDisk()
    file = disk.map("/00", 1024)
    disk.fail("sync")
    disk.fail("map", errno.ENOSPC, times=2)
    disk.fail("replace", errno.ENOSPC)
    with pytest.raises(OSError, match="/00"):
        run(file.sync(0, 1))
    run(file.sync(0, 1))
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            disk.map("/01", 1024)
    disk.map("/01", 1024)
    with pytest.raises(OSError, match="No space"):
        disk.replace("/state", b"x")
    assert disk.read("/state") is None
