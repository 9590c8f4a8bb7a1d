"""The timers of a slave follow its master's, so that it can go on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from sprocket.delay.levels.delivered import records_from
from sprocket.delay.timers import delivery_history
from sprocket.delay.timers.timed_delivery import TimedDelivery
from sprocket.message.topic import TIMER
from sprocket.store.store import Store
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.cluster import SMALL_STORE
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import Asker

#: A message is rolled within seconds.
ROLLING = replace(SMALL_STORE, timer_roll_slots=8)


def play(test: Callable[[BrokerGroup], Awaitable[None]], **settings: Any) -> None:
    async def main(network: Network) -> None:
        async with group(network, **settings) as running:
            await running.askers[0].create("T")
            await test(running)

    simulate(main)


async def send_for(asker: Asker, *seconds: float) -> None:
    """Messages that are due in so many seconds."""
    now_ms = EPOCH_MS + int(asyncio.get_running_loop().time() * 1000)
    for each in seconds:
        await asker.send("T", b"%d" % each, TIMER_DELIVER_MS=str(now_ms + int(each * 1000)))


def timers_of(machine: Any) -> Any:
    return machine.server._parts.timers


async def promote(running: BrokerGroup) -> None:
    """Kills the master; the slave, stopped in order, is started as a master."""
    slave = running.slaves[0]
    running.master.kill()
    await slave.stop()
    await running.cluster.promote(slave, id=0, role="ASYNC_MASTER")


def test_what_waits_is_on_the_slaves_wheel_and_what_came_is_not() -> None:
    async def test(running: BrokerGroup) -> None:
        await send_for(running.askers[0], 1, 2, 3, 60, 61, 200)
        await asyncio.sleep(10)
        assert timers_of(running.slaves[0]).counts.total == 3
        assert timers_of(running.slaves[0]).lag == 0
        assert await running.askers[1].max_offset("T") == 3

    play(test)


def test_a_slave_that_is_new_takes_no_message_for_waiting_that_came_long_ago() -> None:
    async def test(running: BrokerGroup) -> None:
        running.slaves[0].pause()
        await send_for(running.askers[0], 1, 2, 3, 100)
        await asyncio.sleep(60)
        running.slaves[0].wake()
        await asyncio.sleep(5)
        assert timers_of(running.slaves[0]).counts.total == 1

    play(test)


@pytest.mark.parametrize("store", [SMALL_STORE, ROLLING])
def test_a_promoted_slave_delivers_what_is_left_once_and_in_time(store: Any) -> None:
    async def test(running: BrokerGroup) -> None:
        slave = running.askers[1]
        await send_for(running.askers[0], 1, 2, 10, 20, 30)
        await asyncio.sleep(15)
        await promote(running)
        assert await slave.max_offset("T") == 3
        await asyncio.sleep(30)
        assert await slave.bodies("T") == [b"1", b"2", b"10", b"20", b"30"]

    play(test, store=store, slave_reads=True)


def test_of_a_message_that_was_rolled_while_a_slave_was_away_only_the_last_copy_waits() -> None:
    async def test(running: BrokerGroup) -> None:
        await running.slaves[0].stop()
        await send_for(running.askers[0], 40)
        await asyncio.sleep(20)
        assert running.master.server._store.max_offset(TIMER, 0) > 2
        await running.slaves[0].start()
        await asyncio.sleep(5)
        await promote(running)
        await asyncio.sleep(30)
        assert await running.askers[1].bodies("T") == [b"40"]

    play(test, store=ROLLING, slave_reads=True)


def test_a_message_that_the_master_would_have_rolled_later_is_not_lost_with_it() -> None:
    """It came to the slave in the next second, so the slave's wheel has it in an earlier slot."""

    async def test(running: BrokerGroup) -> None:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(1.99 - now % 1)
        await send_for(running.askers[0], 11)
        await asyncio.sleep(6.5)
        await promote(running)
        await asyncio.sleep(10)
        assert await running.askers[1].bodies("T") == [b"11"]

    play(test, store=ROLLING, slave_reads=True)


def test_a_promoted_slave_reads_only_the_end_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def records(store: Store, at: int) -> Any:
        read.append(store.log_end - at)
        return records_from(store, at)

    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers[0], running.slaves[0]
        await send_for(master, *range(1, 40), 100)
        await asyncio.sleep(50)
        monkeypatch.setattr(delivery_history, "records_from", records)
        end = slave.server._store.log_end
        await promote(running)
        assert len(read) == 1
        assert read[0] < end / 10
        assert timers_of(slave).lag == 0
        assert slave.server._store.max_offset(TIMER, 0) == 40

    play(test)


def test_a_slave_that_is_promoted_while_it_runs_goes_on_where_it_is() -> None:
    async def test(running: BrokerGroup) -> None:
        slave, timers = running.slaves[0], timers_of(running.slaves[0])
        await send_for(running.askers[0], 1, 2, 10, 20)
        await asyncio.sleep(12)
        running.master.kill()
        inside = slave.server._now
        tasks = [*inside._running.tasks, *inside._replicating.tasks]
        copies = [task for task in tasks if "master" in task.get_name()]
        for task in copies:
            task.cancel()
        await asyncio.wait(copies)
        await timers.start()
        came: list[Any] = []
        delivery = TimedDelivery(
            timers, slave.server._store, came.append, clock=slave.clock, save_ms=lambda: 1000
        )
        delivering = asyncio.ensure_future(delivery.run())
        await asyncio.sleep(5)
        assert came == []
        await asyncio.sleep(10)
        assert [draft.body for draft in came] == [b"20"]
        delivering.cancel()

    play(test)
