"""A start: a log that is gone is told from a folder that is new."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from sprocket.base.errors import StoreError
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

LOG = f"{ROOT}/commitlog"


async def filled(stop: bool) -> MemoryDisk:
    disk = MemoryDisk()
    store = await opened(disk)
    for number in range(30):
        store.append(a_draft(b"%d" % number))
    await store._flush.finish()
    left = disk if stop else disk.after_kill()
    await store.close()
    return left


def without_log(disk: MemoryDisk) -> None:
    for name in disk.names(LOG):
        disk.remove(f"{LOG}/{name}")


def without_log_and_checkpoint(disk: MemoryDisk) -> None:
    without_log(disk)
    disk.remove(f"{ROOT}/checkpoint")


def without_log_and_queues(disk: MemoryDisk) -> None:
    without_log(disk)
    for name in disk.names(f"{ROOT}/consumequeue/orders/0"):
        disk.remove(f"{ROOT}/consumequeue/orders/0/{name}")


@pytest.mark.parametrize(
    ("do", "stop"),
    [
        (without_log, True),
        (without_log, False),
        (without_log_and_checkpoint, True),
        (without_log_and_queues, True),
        (without_log_and_queues, False),
    ],
)
def test_a_log_that_is_gone_is_refused_unless_it_is_wanted(
    do: Callable[[MemoryDisk], None], stop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk = await filled(stop)
        do(disk)
        for _ in range(2):
            with pytest.raises(StoreError, match="storePathCommitLog") as refused:
                await opened(disk)
            assert "\n" not in str(refused.value)
            assert LOG in str(refused.value)
            assert "on_damage = CUT" in str(refused.value)
        store = await opened(disk, config=replace(SMALL, on_damage="CUT"))
        store.append(a_draft(b"new"))
        assert bodies(store)[-1:] == [b"new"]
        await store.close()
        await (await opened(disk)).close()

    with caplog.at_level(logging.ERROR):
        run(check())
    assert "no file of the log" in caplog.text


def test_a_forgotten_folder_of_the_log_loses_nothing() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        elsewhere = replace(SMALL, log_paths=("/other/log",))
        store = await opened(disk, config=elsewhere)
        store.append(a_draft(b"one"))
        await store.close()
        with pytest.raises(StoreError, match="storePathCommitLog"):
            await opened(disk)
        assert bodies(await opened(disk, config=elsewhere)) == [b"one"]

    run(check())


def test_a_folder_with_state_files_only_is_new() -> None:
    async def check() -> None:
        old = await filled(True)
        disk = MemoryDisk()
        disk.make_directory(f"{ROOT}/config")
        for name in old.names(f"{ROOT}/config"):
            disk.replace(f"{ROOT}/config/{name}", old.read(f"{ROOT}/config/{name}") or b"")
        store = await opened(disk)
        store.append(a_draft(b"one"))
        assert bodies(store) == [b"one"]
        await store.close()
        assert bodies(await opened(disk)) == [b"one"]

    run(check())


@pytest.mark.parametrize("stop", [False, True])
def test_a_store_without_messages_is_opened_again(stop: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        left = disk if stop else disk.after_kill()
        await store.close()
        assert bodies(await opened(left)) == []

    run(check())
