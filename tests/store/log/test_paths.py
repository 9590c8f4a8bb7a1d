"""A log whose files are spread over several folders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sprocket.base.errors import ConfigError
from sprocket.store.log.paths import LogPaths
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

TWO = replace(SMALL, log_paths=("/one/log", "/two/log"))


class Disks(MemoryDisk):
    """Folders below `/one` and `/two` are on disks of their own."""

    usages: dict[str, float]

    def usage(self, path: str) -> float:
        return self.usages.get(path[:4], 0.1)


def starts(disk: MemoryDisk, folder: str) -> list[int]:
    return [int(name) // SMALL.log_file_bytes for name in disk.names(folder)]


def test_files_go_to_the_folders_by_turns_and_are_found_again() -> None:
    async def check() -> None:
        disk = FaultyDisk(3)
        store = await opened(disk, config=TWO)
        for n in range(100):
            store.append(a_draft(b"%d" % n))
        count = -(-store.log_end // SMALL.log_file_bytes)
        assert starts(disk, "/one/log") == list(range(0, count, 2))
        assert starts(disk, "/two/log") == list(range(1, count, 2))
        await store.sync()
        again = await opened(disk.after_power_loss(), config=TWO)
        assert bodies(again) == [b"%d" % n for n in range(100)]
        assert disk.names(f"{ROOT}/commitlog") == []

    run(check())


def test_a_folder_may_be_added_and_another_made_read_only() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(40):
            store.append(a_draft(b"%d" % n))
        await store.close()
        old = starts(disk, f"{ROOT}/commitlog")
        moved = replace(SMALL, log_paths=("/one/log",), log_read_only_paths=(f"{ROOT}/commitlog",))
        store = await opened(disk, config=moved)
        for n in range(40, 100):
            store.append(a_draft(b"%d" % n))
        assert bodies(store) == [b"%d" % n for n in range(100)]
        assert starts(disk, f"{ROOT}/commitlog") == old
        assert starts(disk, "/one/log")[0] == old[-1] + 1

    run(check())


def test_the_oldest_file_of_all_folders_goes_first() -> None:
    async def check() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        config = replace(TWO, log_bytes_max=3 * SMALL.log_file_bytes)
        store = await opened(disk, clock=clock, config=config)
        for n in range(100):
            store.append(a_draft(b"%d" % n))
        await store.sync()
        before = len(starts(disk, "/one/log") + starts(disk, "/two/log"))
        assert await store.disk_space.remove_old() == before - 3
        left = sorted(starts(disk, "/one/log") + starts(disk, "/two/log"))
        assert left == list(range(before - 3, before))

    run(check())


def test_a_full_disk_gets_no_new_file_while_another_has_room() -> None:
    async def check() -> None:
        disk = Disks()
        disk.usages = {"/one": 0.86}
        store = await opened(disk, config=TWO)
        for n in range(60):
            store.append(a_draft(b"%d" % n))
        assert starts(disk, "/one/log") == []
        assert store.disk_space.rules.is_full(store.disk_space._used_percent()) is False
        disk.usages = {"/one": 0.95, "/two": 0.91}
        store.disk_space.check()
        assert "full" in str(store.flags.refusal)
        disk.usages = {"/one": 0.95, "/two": 0.5}
        store.disk_space.check()
        assert store.flags.refusal is None

    run(check())


def test_one_file_in_two_folders_is_refused() -> None:
    disk = MemoryDisk()
    for folder in ("/one/log", "/two/log"):
        disk.make_directory(folder)
        disk.map(f"{folder}/{0:020d}", SMALL.log_file_bytes)
    with pytest.raises(ConfigError, match=r"/two/log/0+ is also /one/log/0+"):
        run(opened(disk, config=TWO))


def test_folders_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="twice"):
        LogPaths.of("/r", ("/a", "/a/"), ())
    with pytest.raises(ConfigError, match="not read-only"):
        LogPaths.of("/r", ("/a",), ("/a",))
    assert LogPaths.of("/r", (), ()) == LogPaths(("/r/commitlog",))
