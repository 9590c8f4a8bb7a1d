"""Delayed messages through a broker's door: on time, never lost, whatever happened to progress."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.store.reading import cold
from sprocket.store.state.snapshot import decode_state
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.parts import ROOT, Asker, new_disk, play, serving
from tests.delay.timing import timing

PROGRESS = f"{ROOT}/config/delayOffset.json"


def progress(disk: MemoryDisk) -> dict[int, int]:
    raw = disk.read(PROGRESS)
    assert raw is not None
    table: dict[int, int] = decode_state(raw.decode())["offsetTable"]
    return table


def test_messages_come_after_the_delay_of_their_level() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for level in (3, 1, 2):
            await asker.send("T", str(level).encode(), DELAY=str(level), TAGS="a")
        for number, (level, seconds) in enumerate([(1, 1), (2, 5), (3, 10)]):
            pulled = await asker.pull("T", number, hold_ms=15_000, tags="a")
            (message,) = pulled.messages
            assert message.body == str(level).encode()
            assert seconds <= loop.time() - began < seconds + 0.1
            assert "DELAY" not in message.properties

    play(test)


def test_many_that_are_due_together_come_in_order() -> None:
    async def test(asker: Asker) -> None:
        sends = [asker.send("T", str(n).encode(), DELAY="1") for n in range(150)]
        await asyncio.gather(*sends)
        await asyncio.sleep(2)
        bodies = await asker.bodies("T")
        assert sorted(bodies, key=int) == bodies
        assert len(bodies) == 150

    play(test)


def test_what_waits_at_a_stop_comes_after_the_next_start_once() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T", b"soon", DELAY="1")
            await asker.send("T", b"later", DELAY="2")
            await asyncio.sleep(2)
            assert await asker.bodies("T") == [b"soon"]
        assert progress(disk) == {1: 1}
        async with serving(disk) as asker:
            await asyncio.sleep(10)
            assert await asker.bodies("T") == [b"soon", b"later"]

    simulate(lambda network: main())


def test_after_a_kill_nothing_is_lost_and_nothing_comes_twice() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk, delay_save_ms=600_000) as asker:
            await asker.send("T", b"a", DELAY="1")
            await asker.send("T", b"b", DELAY="2")
            await asyncio.sleep(2)
            left = disk.after_kill()
        async with serving(left) as asker:
            await asyncio.sleep(10)
            assert await asker.bodies("T") == [b"a", b"b"]

    simulate(lambda network: main())


@pytest.mark.parametrize("told", [9999, -7])
def test_progress_that_points_outside_its_queue_is_corrected_and_said(
    told: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T", b"before", DELAY="4")
        disk.replace(PROGRESS, f'{{"offsetTable":{{4:{told}}}}}'.encode())
        async with serving(disk) as asker:
            await asker.send("T", b"after", DELAY="4")
            await asyncio.sleep(31)
            assert (await asker.bodies("T"))[-1] == b"after"

    with caplog.at_level(logging.WARNING):
        simulate(lambda network: main())
    assert f"the next offset was {told}," in caplog.text


def test_a_due_message_waits_for_room_on_the_disk_and_comes_once() -> None:
    class FullDisk(MemoryDisk):
        fullness = 0.1

        def usage(self, path: str) -> float:
            return self.fullness

    disk = FullDisk()
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        await asker.send("T", b"a", DELAY="3")
        await asker.send("T", b"b", DELAY="3")
        disk.fullness = 0.99
        await asyncio.sleep(30)
        assert await asker.bodies("T") == []
        disk.fullness = 0.1
        await asyncio.sleep(15)
        assert await asker.bodies("T") == [b"a", b"b"]

    play(test, disk)


@pytest.mark.parametrize("wish", [{"DELAY": "2"}, {"TIMER_DELAY_SEC": "5"}], ids=["level", "time"])
def test_what_left_memory_while_it_waited_is_loaded_in_the_background_first(
    wish: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold, "_HOT_BYTES", 0)
    log = f"{ROOT}/commitlog/{0:020d}"

    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T", b"waits", **wish)
            await asyncio.sleep(3)
            disk.cold[log] = range(disk.size(log) or 0)
            await asyncio.sleep(4)
            assert disk.cold[log].start > 0
            assert await asker.bodies("T") == [b"waits"]

    simulate(lambda network: main())


def test_a_clock_that_was_set_back_holds_nothing_longer_than_its_delay() -> None:
    async def main() -> None:
        clock = LoopClock(skew_ms=3_600_000)
        loop = asyncio.get_running_loop()
        async with timing(new_disk(), clock=clock) as asker:
            for body in (b"1", b"2"):
                await asker.send("T", body, DELAY="2")
            clock.skew_ms = 0
            began = loop.time()
            for body in (b"3", b"4", b"5"):
                await asker.send("T", body, DELAY="2")
            await asyncio.sleep(began + 4.5 - loop.time())
            assert await asker.bodies("T") == []
            await asyncio.sleep(began + 10.5 - loop.time())
            assert await asker.bodies("T") == [b"1", b"2", b"3", b"4", b"5"]
            await asker.send("T", b"6", DELAY="2")
            await asyncio.sleep(4.5)
            assert len(await asker.bodies("T")) == 5
            await asyncio.sleep(1)
            assert len(await asker.bodies("T")) == 6

    simulate(lambda network: main())
