"""What others do to the files of a store that is open: told, and nothing is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from sprocket.base.errors import OffsetOutOfRange, StoreError
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

LOG = f"{ROOT}/commitlog"


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_file_of_the_log_that_is_removed_ends_the_store_and_is_there_again(which: int) -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        work = asyncio.ensure_future(store.run())
        for number in range(60):
            store.append(a_draft(b"%d" % number))
        name = disk.names(LOG)[which]
        disk.remove(f"{LOG}/{name}")
        store.append(a_draft(b"60"))
        with pytest.raises(StoreError, match=f"{name} was removed while it was in use"):
            await work
        with pytest.raises(StoreError, match="was removed"):
            store.append(a_draft(b"never"))
        assert len(bodies(store)) == 61
        await store.close()
        assert bodies(await opened(disk)) == [b"%d" % number for number in range(61)]

    simulate(check)


def test_a_stop_writes_removed_files_anew(tmp_path: Path) -> None:
    async def check() -> None:
        store = await real(tmp_path)
        for number in range(60):
            store.append(a_draft(b"%d" % number))
        for file in (tmp_path / "commitlog").iterdir():
            file.unlink()
        await store.close()
        store = await real(tmp_path)
        assert bodies(store) == [b"%d" % number for number in range(60)]
        await store.close()

    run(check())


def test_who_loses_the_lock_writes_no_more(tmp_path: Path) -> None:
    async def check() -> None:
        store = await real(tmp_path, disk_check_interval_ms=10)
        store.append(a_draft())
        (tmp_path / "lock").unlink()
        with pytest.raises(StoreError, match="the lock was taken away"):
            await store.run()
        with pytest.raises(StoreError, match="the lock was taken away"):
            store.append(a_draft())
        await store.close()

    run(check())


def test_no_empty_file_is_made_in_place_of_one_that_is_gone() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for number in range(60):
            store.append(a_draft(b"%d" % number))
        await store.close()
        store = await opened(disk)
        path = f"{LOG}/{disk.names(LOG)[1]}"
        disk.remove(path)
        with pytest.raises((StoreError, OffsetOutOfRange)):
            bodies(store)
        assert disk.size(path) is None

    run(check())


async def real(path: Path, **settings: int) -> Store:
    return await Store.open(
        disk=SystemDisk(),
        clock=SystemClock(),
        root=str(path),
        config=replace(SMALL, **settings),
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )
