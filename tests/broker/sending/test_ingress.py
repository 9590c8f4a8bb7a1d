"""The one door into the log, and what it does not let through."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.disk import MemoryDisk
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play


def message(properties: str) -> SendMessageV2:
    return SendMessageV2(producer_group="p", topic="T", queue_id=0, properties=properties)


def test_a_broker_without_timers_refuses_times_and_stores_nothing_as_something_else() -> None:
    async def test(asker: Asker) -> None:
        for name in ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"):
            reply = await asker.call(message(f"{name}\x015\x02"), b"timed")
            assert (reply.code, "timer" in (reply.remark or "")) == (1, True)
        assert await asker.max_offset("T") == 0
        assert await asker.code(message("TRAN_MSG\x01false\x02"), b"plain") == SUCCESS

    play(test, store=replace(STORE, timers=False))


def test_a_delay_that_is_no_number_is_named() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(message("DELAY\x01abc\x02"), b"x")
        assert reply.code == 1
        assert "DELAY" in (reply.remark or "")

    play(test)


def test_a_full_disk_refuses_sends_and_serves_the_rest_until_there_is_room() -> None:
    class FullDisk(MemoryDisk):
        fullness = 0.1

        def usage(self, path: str) -> float:
            return self.fullness

    disk = FullDisk()
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        await asker.send("T", b"before")
        disk.fullness = 0.95
        await asyncio.sleep(11)
        reply = await asker.call(message(""), b"during")
        assert (reply.code, "95 % full" in (reply.remark or "")) == (14, True)
        assert await asker.bodies("T") == [b"before"]
        await asker.beat("g", topics={"T": "*"})
        assert await asker.commit("g", "T", 1) == SUCCESS
        disk.fullness = 0.1
        await asyncio.sleep(11)
        await asker.send("T", b"after")
        assert await asker.bodies("T") == [b"before", b"after"]

    play(test, disk)
