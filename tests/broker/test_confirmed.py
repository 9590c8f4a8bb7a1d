"""What members of a group show after a restart, and after a change of the master."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.message import properties as names
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import Asker
from tests.broker.scripted import LEASE, ScriptedGroup, scripted

SUCCESS, NOT_FOUND, SERVICE_NOT_AVAILABLE = 0, 19, 14


def play(test: Callable[[ScriptedGroup], Awaitable[None]], **settings: object) -> None:
    async def main(network: Network) -> None:
        async with scripted(network, slave_reads=True, **settings) as running:  # type: ignore[arg-type]
            await running.asker(1).create("T")
            await running.copied()
            await asyncio.sleep(2.0)
            assert running.view.in_sync == {1, 2, 3}
            await test(running)

    simulate(main)


async def send_unconfirmed(running: ScriptedGroup, **properties: str) -> None:
    """Sends a message that members 1 and 2 have, and member 3 of the in-sync set has not."""
    running.machine(3).pause()
    running.script.is_away = True
    await running.asker(1).send("T", b"tail", **properties)
    await asyncio.sleep(0.5)
    ends = [running.machine(n).server._store.log_end for n in (1, 2)]
    assert ends[0] == ends[1] > running.machine(1).server._store.readable_end


def elector_is_back(running: ScriptedGroup) -> None:
    running.script.is_away = False
    running.script.decide()


async def restart(running: ScriptedGroup, number: int) -> Asker:
    running.machine(number).kill()
    await running.machine(number).start()
    await asyncio.sleep(0.5)
    return running.asker(number)


def test_a_slave_that_was_killed_shows_what_is_confirmed_and_the_rest_when_it_is() -> None:
    async def test(running: ScriptedGroup) -> None:
        await running.asker(1).send("T", b"confirmed")
        await running.copied()
        await asyncio.sleep(1.5)
        await send_unconfirmed(running)
        slave = await restart(running, 2)
        assert await slave.bodies("T") == [b"confirmed"]
        beyond = await slave.pull("T", 2)
        assert (beyond.code, beyond.next_offset) != (SUCCESS, 1)
        running.machine(3).wake()
        elector_is_back(running)
        await running.copied()
        assert await slave.bodies("T") == [b"confirmed", b"tail"]

    play(test)


def test_a_stop_in_order_keeps_all_that_was_confirmed() -> None:
    async def test(running: ScriptedGroup) -> None:
        await running.asker(1).send("T", b"confirmed")
        await running.copied()
        running.script.is_away = True
        await running.machine(2).stop()
        running.machine(1).pause()
        await running.machine(2).start()
        assert running.machine(2).server._store.max_offset("T", 0) == 1
        running.machine(1).wake()

    play(test)


def test_a_new_master_moves_nobody_backwards_and_says_where_queues_end_once_it_knows() -> None:
    async def test(running: ScriptedGroup) -> None:
        await send_unconfirmed(running)
        master = await restart(running, 2)
        running.machine(1).kill()
        elector_is_back(running)
        assert await running.led(but=1) == 2
        store = running.machine(2).server._store
        assert (store.max_offset("T", 0), store.stored.max_offset("T", 0)) == (0, 1)
        at_the_end = await master.pull("T", 1)
        assert (at_the_end.code, at_the_end.next_offset) == (NOT_FOUND, 1)
        held = asyncio.ensure_future(master.pull("T", 1, hold_ms=20_000))
        assert await master.max_offset("T") == 1, "it waited until member 3 had left the set"
        await asyncio.sleep(LEASE)
        assert not held.done(), "the message before its offset is no news"
        await master.send("T", b"next")
        pulled = await held
        assert [each.body for each in pulled.messages] == [b"next"]

    play(test)


def test_a_master_that_cannot_know_where_queues_end_says_so() -> None:
    async def test(running: ScriptedGroup) -> None:
        await send_unconfirmed(running)
        master = await restart(running, 2)
        running.machine(1).kill()
        elector_is_back(running)
        assert await running.led(but=1) == 2
        running.script.is_away = True
        assert await master.code(MaxOffset(topic="T", queue_id=0)) == SERVICE_NOT_AVAILABLE

    play(test)


def test_a_commit_at_a_slave_counts_for_messages_that_it_has_and_does_not_show_yet() -> None:
    async def test(running: ScriptedGroup) -> None:
        await send_unconfirmed(running)
        slave = await restart(running, 2)
        await slave.beat("g", topics={"T": "*"})
        assert await slave.commit("g", "T", 1) == SUCCESS
        assert await slave.committed("g", "T") == 1

    play(test)


def test_a_timed_message_at_the_end_that_is_not_confirmed_comes_once() -> None:
    async def test(running: ScriptedGroup) -> None:
        due_ms = running.machine(1).clock.now_ms() + 20_000
        await send_unconfirmed(running, **{names.TIMER_DELIVER_MS: str(due_ms)})
        await asyncio.sleep(3.0)  # it is in the files of the timers
        await running.machine(1).stop()
        await running.machine(1).start()
        elector_is_back(running)
        running.script.lead(1)
        running.machine(3).wake()
        await asyncio.sleep(25.0)
        assert await running.asker(running.master).bodies("T") == [b"tail"]
        running.machine(3).wake()

    play(test)
