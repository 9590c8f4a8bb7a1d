"""Files of the log that are too short: a changed setting, a crash, or a copy that was cut."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from sprocket.base.errors import ConfigError, StoreError
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

LOG = f"{ROOT}/commitlog"
COUNT = 50


async def filled(stop: bool) -> MemoryDisk:
    disk = MemoryDisk()
    store = await opened(disk)
    for number in range(COUNT):
        store.append(a_draft(b"%d" % number))
    await store.sync()
    left = disk if stop else disk.after_kill()
    await store.close()
    return left


def path_behind(disk: MemoryDisk) -> str:
    return f"{LOG}/{len(disk.names(LOG)) * SMALL.log_file_bytes:020d}"


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("content", [b"\0" * 4, b"\0" * 1000, b"x" * 1000])
def test_a_short_next_file_without_a_message_is_removed(
    content: bytes, stop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk = await filled(stop)
        path = path_behind(disk)
        disk.replace(path, content)
        store = await opened(disk)
        assert disk.size(path) is None
        assert bodies(store) == [b"%d" % number for number in range(COUNT)]
        for number in range(COUNT):
            store.append(a_draft(b"%d" % number))
        await store.close()
        assert len(bodies(await opened(disk))) == 2 * COUNT

    with caplog.at_level(logging.WARNING):
        run(check())
    assert f"had {len(content)} of 2048 bytes and no message: it is removed" in caplog.text


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_a_last_file_that_is_cut_keeps_its_messages(
    stop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk = await filled(stop)
        path = f"{LOG}/{disk.names(LOG)[-1]}"
        disk.replace(path, (disk.read(path) or b"")[:700], backup=False)
        store = await opened(disk)
        kept = len(bodies(store))
        assert bodies(store) == [b"%d" % number for number in range(kept)]
        assert COUNT - 15 < kept < COUNT
        assert store.append(a_draft(b"next")).queue_offset == kept
        await store.close()
        assert len(bodies(await opened(disk))) == kept + 1

    with caplog.at_level(logging.WARNING):
        run(check())
    assert "had 700 of 2048 bytes: it is made good" in caplog.text


def test_a_file_between_others_that_is_cut_is_refused_and_blames_no_setting() -> None:
    async def check() -> None:
        disk = await filled(True)
        path = f"{LOG}/{disk.names(LOG)[1]}"
        disk.replace(path, b"x" * 700, backup=False)
        with pytest.raises(StoreError, match="700 bytes, and the other files of the log have"):
            await opened(disk)

    run(check())


@pytest.mark.parametrize("size", [1024, 4096])
def test_a_changed_setting_is_told_as_such(size: int) -> None:
    async def check() -> None:
        disk = await filled(True)
        with pytest.raises(ConfigError, match=f"mappedFileSizeCommitLog is {size}"):
            await opened(disk, config=replace(SMALL, log_file_bytes=size))
        with pytest.raises(ConfigError, match=f"mappedFileSizeConsumeQueue is {size // 64 * 20}"):
            await opened(disk, config=replace(SMALL, queue_file_bytes=size // 64 * 20))

    run(check())
