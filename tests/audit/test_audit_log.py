"""The audit log on disks that work, are slow, are full, and fail."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.audit import audit_log as module
from sprocket.audit.audit_log import AuditLog, audit_log
from sprocket.audit.config import AuditConfig
from sprocket.base.errors import DirectoryInUse
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate

FOLDER = "/data/audit/broker"
FILE = f"{FOLDER}/audit.jsonl"


def made(disk: MemoryDisk, **settings: Any) -> AuditLog:
    found = audit_log(
        AuditConfig(enabled=True, **settings),
        server="b",
        part="broker",
        beside="/data",
        disk=disk,
        clock=LoopClock(),
    )
    assert found is not None
    return found


def record(log: AuditLog, topic: str) -> None:
    log.record(
        user="u", address="1.2.3.4:5", client="", request="DELETE", code=215,
        named={"topic": topic}, result=0, remark=None,
    )  # fmt: skip


def lines(disk: MemoryDisk, path: str = FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (disk.read(path) or b"").splitlines()]


def topics(disk: MemoryDisk, path: str = FILE) -> list[str]:
    return [each["named"].get("topic", "") for each in lines(disk, path)]


def play(test: Callable[[], Awaitable[None]]) -> None:
    async def main(_: object) -> None:
        await test()

    simulate(main)


def test_a_line_is_whole_and_an_audit_log_goes_on_after_a_restart() -> None:
    async def test() -> None:
        disk = MemoryDisk()
        for topic in ("a", "b"):
            async with made(disk) as log:
                record(log, topic)
        found = lines(disk)
        assert topics(disk) == ["a", "b"]
        assert found[0] | {"time": ""} == {
            "time": "", "server": "b", "user": "u", "address": "1.2.3.4:5", "client": "",
            "request": "DELETE", "code": 215, "named": {"topic": "a"}, "result": 0,
            "remark": None, "times": 1,
        }  # fmt: skip

    play(test)


def test_files_are_followed_by_new_ones_and_the_oldest_go() -> None:
    async def test() -> None:
        disk = MemoryDisk()
        async with made(disk, file_bytes=64 << 10, files_max=3) as log:
            for number in range(2_000):
                record(log, f"{number:04}")
                if number % 50 == 0:
                    await asyncio.sleep(0.01)
        kept = [topics(disk, path) for path in (f"{FILE}.2", f"{FILE}.1", FILE)]
        assert disk.read(f"{FILE}.3") is None
        every = [each for part in kept for each in part]
        assert every == [f"{number:04}" for number in range(2_000 - len(every), 2_000)]
        assert all((disk.size(f"{FILE}.{n}") or 0) <= 64 << 10 for n in (1, 2))

    play(test)


def test_recording_never_waits_for_a_slow_disk() -> None:
    async def test() -> None:
        disk = FaultyDisk(sync_seconds=(30.0, 30.0))
        loop = asyncio.get_running_loop()
        log = made(disk)
        await log.__aenter__()
        began = loop.time()
        for number in range(100):
            record(log, str(number))
        assert loop.time() == began
        await asyncio.sleep(100)
        assert len(topics(disk)) == 100
        await log.__aexit__(None, None, None)

    play(test)


def test_a_full_disk_loses_what_memory_has_no_place_for_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 10_000)

    async def test() -> None:
        disk = FaultyDisk()
        disk.fail("sync", errno.ENOSPC, times=20)
        async with made(disk) as log:
            for number in range(1_000):
                record(log, str(number))
                if number % 100 == 0:
                    await asyncio.sleep(1)
            assert log._waiting_bytes <= 10_000
            await asyncio.sleep(60)
            found = lines(disk)
            lost = [each for each in found if each["request"] == "ENTRIES_LOST"]
            assert [each["named"]["count"] for each in lost] == [log.lost]
            assert log.lost + len(found) - 1 == 1_000
            assert topics(disk)[:3] == ["0", "1", "2"]

    with caplog.at_level(logging.INFO):
        play(test)
    said = [each.getMessage() for each in caplog.records if each.name == module.__name__]
    assert len([each for each in said if "cannot be written" in each]) == 1
    assert len([each for each in said if "is written again" in each]) == 1
    assert len([each for each in said if "are lost" in each]) == 1
    assert len([each for each in said if "were lost" in each]) == 1


def test_a_disk_that_hangs_holds_a_stop_up_for_seconds_only() -> None:
    async def test() -> None:
        disk = FaultyDisk(sync_seconds=(1e6, 1e6))
        loop = asyncio.get_running_loop()
        async with made(disk) as log:
            record(log, "t")
            await asyncio.sleep(1)
            began = loop.time()
        assert loop.time() - began < 6
        assert log.lost == 1

    play(test)


def test_a_line_that_a_crash_cut_does_not_spoil_the_next() -> None:
    async def test() -> None:
        disk = MemoryDisk()
        disk.make_directory(FOLDER)
        disk.replace(FILE, b'{"time":"', backup=False)
        async with made(disk) as log:
            record(log, "t")
        assert (disk.read(FILE) or b"").split(b"\n")[1].startswith(b'{"time":"')

    play(test)


def test_two_processes_do_not_write_into_one_folder() -> None:
    async def test() -> None:
        disk = MemoryDisk()
        async with made(disk):
            with pytest.raises(DirectoryInUse):
                await made(disk).__aenter__()

    play(test)


def test_without_the_setting_there_is_none() -> None:
    for config in (None, AuditConfig()):
        assert audit_log(
            config, server="b", part="broker", beside="/", disk=MemoryDisk(), clock=LoopClock()
        ) is None  # fmt: skip
