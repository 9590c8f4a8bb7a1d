"""The real disk: what only it can show. What every disk must do: tests/testing/test_disk.py."""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.base.errors import DirectoryInUse, StoreError
from sprocket.runtime.disk import SystemDisk
from tests.support import run


def test_what_is_written_into_a_mapping_is_in_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    file = SystemDisk().map(path, 8192)
    file.buffer[5000:5003] = b"abc"
    run(file.sync(5000, 5003))
    file.close()
    assert (tmp_path / "log").read_bytes()[4999:5004] == b"\0abc\0"


def test_a_mapped_file_is_sparse(tmp_path: Path) -> None:
    file = SystemDisk().map(str(tmp_path / "log"), 1 << 30)
    assert os.stat(file.path).st_blocks * 512 < 1 << 20
    file.close()


def test_closing_during_a_sync_waits_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        file = SystemDisk().map(str(tmp_path / "log"), 1 << 20)
        file.buffer[:] = b"x" * (1 << 20)
        syncing = asyncio.ensure_future(file.sync(0, 1 << 20))
        await asyncio.sleep(0)
        file.close()
        await syncing
        with pytest.raises(ValueError, match="released"):
            file.buffer[0]

    run(main())


def test_the_backup_is_the_version_before(tmp_path: Path) -> None:
    disk = SystemDisk()
    path = str(tmp_path / "topics.json")
    for content in (b"1", b"2", b"3"):
        disk.replace(path, content)
    assert disk.read(path) == b"3"
    assert disk.read(f"{path}.bak") == b"2"
    assert disk.names(str(tmp_path)) == ["topics.json", "topics.json.bak"]


def test_a_folder_is_refused_to_another_process(tmp_path: Path) -> None:
    asks = (
        "import sys\n"
        "from sprocket.base.errors import DirectoryInUse\n"
        "from sprocket.runtime.disk import SystemDisk\n"
        "try: SystemDisk().lock(sys.argv[1])\n"
        "except DirectoryInUse: sys.exit(7)\n"
    )
    asker = [sys.executable, "-c", asks, str(tmp_path)]
    lock = SystemDisk().lock(str(tmp_path))
    with pytest.raises(DirectoryInUse):
        SystemDisk().lock(f"{tmp_path}/../{tmp_path.name}")
    assert subprocess.run(asker, check=False).returncode == 7
    lock.release()
    assert subprocess.run(asker, check=False).returncode == 0


def test_usage_is_a_ratio(tmp_path: Path) -> None:
    assert 0.0 <= SystemDisk().usage(str(tmp_path)) <= 1.0


def test_zeros_have_room_and_what_was_written_before_them_stays(tmp_path: Path) -> None:
    async def main() -> None:
        file = SystemDisk().map(str(tmp_path / "log"), 8 << 20)
        file.buffer[:3] = b"abc"
        file.zero(3, 1 << 20)
        await file.prepare(1 << 20, 4 << 20)
        assert os.stat(file.path).st_blocks * 512 >= 4 << 20
        assert bytes(file.buffer[:4]) == b"abc\0"
        file.close()

    run(main())


def test_preparing_stays_behind_what_was_taken_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        file = SystemDisk().map(str(tmp_path / "log"), 64 << 20)
        for start in range(0, 64 << 20, 8 << 20):
            preparing = asyncio.ensure_future(file.prepare(start, start + (8 << 20)))
            await asyncio.sleep(0)
            for taken in range(start, start + (4 << 20), 1 << 18):
                file.zero(taken, taken + (1 << 18))
                file.buffer[taken : taken + (1 << 18)] = b"x" * (1 << 18)
            await preparing
            assert bytes(file.buffer[start : start + (4 << 20)]) == b"x" * (4 << 20)
        file.close()

    run(main())


def test_what_a_full_disk_did_not_zero_is_prepared_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a mapping is written where it has no room, which ends the process."""
    written: list[tuple[int, int]] = []
    room = 1 << 18
    right = os.pwrite

    def pwrite(descriptor: int, zeros: bytes, start: int) -> int:
        if start + len(zeros) > room:
            raise OSError(errno.ENOSPC, "full")
        written.append((start, start + len(zeros)))
        return right(descriptor, zeros, start)

    monkeypatch.setattr(os, "pwrite", pwrite)
    file = SystemDisk().map(str(tmp_path / "log"), 1 << 20)
    with pytest.raises(OSError, match="full"):
        file.zero(0, 1 << 19)
    with pytest.raises(OSError, match="full"):
        run(file.prepare(1 << 18, 1 << 19))
    room = 1 << 20
    run(file.prepare(1 << 18, 1 << 19))
    assert written == [(0, 1 << 18), (1 << 18, 1 << 19)]
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="what is a folder cannot be opened as a file")
def test_a_lock_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StoreError, match=r"cannot lock .*lock: Is a directory"):
        SystemDisk().lock(str(tmp_path))
    with pytest.raises(StoreError, match=r"cannot lock .*lock: No such file"):
        SystemDisk().lock(str(tmp_path / "nowhere"))


def test_clearing_a_large_file_takes_no_time_and_gives_its_room_back(tmp_path: Path) -> None:
    file = SystemDisk().map(str(tmp_path / "log"), 1 << 30)
    file.buffer[: 1 << 20] = b"x" * (1 << 20)
    file.buffer[-3:] = b"end"
    file.clear_from(5000)
    assert bytes(file.buffer[4999:5002]) == b"x\0\0"
    assert bytes(file.buffer[-3:]) == bytes(3)
    assert os.stat(file.path).st_size == 1 << 30
    assert os.stat(file.path).st_blocks * 512 < 1 << 20
    file.close()


def test_a_cancelled_call_keeps_the_file_open_for_its_thread(tmp_path: Path) -> None:
    async def main() -> None:
        file = SystemDisk().map(str(tmp_path / "log"), 8 << 20)
        preparing = asyncio.ensure_future(file.prepare(0, 8 << 20))
        await asyncio.sleep(0)
        preparing.cancel()
        file.close()
        await asyncio.gather(preparing, return_exceptions=True)

    run(main())
    assert (tmp_path / "log").read_bytes() == bytes(8 << 20)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system has no call for it")
def test_whole_pages_get_room_however_small_the_blocks_of_the_disk_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is written whole: with room for a part of it only, a full disk ends the process."""
    reserved: list[tuple[int, int]] = []

    def reserve(descriptor: int, start: int, size: int) -> None:
        reserved.append((start, start + size))

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    page = mmap.PAGESIZE
    file = SystemDisk().map(str(tmp_path / "log"), 4 * page + 100)
    file.reserve(page + 7, 2 * page + 9)
    file.reserve(4 * page, 4 * page + 50)
    assert reserved == [(page, 3 * page), (4 * page, 4 * page + 100)]
    reserved.clear()
    file.zero(0, page + 100)
    run(file.prepare(page + 100, 2 * page + 1))
    file.zero(2 * page + 1, 3 * page)
    assert reserved == [(page, 2 * page), (2 * page, 3 * page)]
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no file is removed there while it is mapped")
def test_a_file_that_was_removed_or_replaced_is_told_and_written_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    file = SystemDisk().map(str(log), 1 << 20)
    file.buffer[500_000:500_003] = b"abc"
    run(file.sync(0, 1 << 20))
    assert file.fault() is None
    kept = log.read_bytes()

    log.rename(tmp_path / "moved")
    assert file.fault() == "was removed"
    run(file.put_back())
    assert not log.exists()  # it is elsewhere, and still ours
    (tmp_path / "moved").unlink()
    run(file.put_back())
    assert log.read_bytes() == kept
    assert file.fault() == "was replaced"
    run(file.put_back())
    assert (tmp_path / "log.lost").read_bytes() == kept
    file.close()


def test_a_file_of_another_size_is_told(tmp_path: Path) -> None:
    file = SystemDisk().map(str(tmp_path / "log"), 8192)
    with (tmp_path / "log").open("ab") as longer:
        longer.write(b"x")
    assert file.fault() == "was given another size"
    file.close()
