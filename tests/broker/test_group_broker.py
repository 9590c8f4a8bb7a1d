"""Brokers of a group change their roles while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import Asker
from tests.broker.scripted import LEASE, ScriptedGroup, scripted

SUCCESS, SYSTEM_BUSY, SERVICE_NOT_AVAILABLE, NOT_FOUND = 0, 2, 14, 19


def play(test: Callable[[ScriptedGroup], Awaitable[None]], **settings: object) -> None:
    async def main(network: Network) -> None:
        async with scripted(network, **settings) as running:  # type: ignore[arg-type]
            await running.asker(running.master).create("T")
            await running.copied()
            running.script.decide(in_sync=frozenset(running.script.view.members))
            await test(running)

    simulate(main)


async def sent(asker: Asker, properties: str = "") -> int:
    header = SendMessageV2(
        producer_group="p", topic="T", queue_id=0, properties=properties, born_timestamp=1
    )
    return await asker.code(header, b"x")


def now() -> float:
    return asyncio.get_running_loop().time()


def test_the_first_member_leads_and_the_others_follow() -> None:
    async def test(running: ScriptedGroup) -> None:
        assert running.script.claims == [1]
        await running.asker(1).send("T", b"one")
        await running.copied()

    play(test)


def test_a_master_that_is_killed_is_replaced_at_once() -> None:
    async def test(running: ScriptedGroup) -> None:
        for n in range(3):
            await running.asker(1).send("T", b"%d" % n)
        await running.copied()
        killed_at = now()
        running.machine(1).kill()
        master = await running.led(but=1)
        assert now() - killed_at < 0.3
        assert master == 2
        await running.asker(2).send("T", b"3")
        await running.copied()
        assert await running.asker(2).bodies("T") == [b"0", b"1", b"2", b"3"]
        await running.machine(1).start()
        await running.copied()
        assert running.script.claims == [1, 2]

    play(test)


def test_a_master_that_stands_still_is_replaced_before_its_lease_ends_and_follows_later() -> None:
    async def test(running: ScriptedGroup) -> None:
        paused_at = now()
        running.machine(1).pause()
        await running.led(but=1)
        assert 0.6 * LEASE < now() - paused_at < 1.1 * LEASE
        await running.asker(2).send("T", b"new")
        running.machine(1).wake()
        await asyncio.sleep(LEASE)
        await running.copied()
        assert running.machine(1).server._parts.replication.is_slave
        assert running.script.claims == [1, 2]
        assert await sent(running.asker(1)) == SYSTEM_BUSY

    play(test)


def test_a_slave_that_alone_does_not_hear_the_master_leaves_it_its_place() -> None:
    async def test(running: ScriptedGroup) -> None:
        running.network.cut("member-1", "member-3")
        await asyncio.sleep(3 * LEASE)
        assert running.script.claims == [1]
        running.network.heal()
        await running.asker(1).send("T", b"on")
        await running.copied()

    play(test)


def test_a_master_that_is_replaced_accepts_nothing_and_ends_what_waits() -> None:
    async def test(running: ScriptedGroup) -> None:
        running.network.cut("member-1", "member-2")
        running.network.cut("member-1", "member-3")
        asker = running.asker(1)
        sending = [asyncio.ensure_future(sent(asker)) for _ in range(3)]
        await asyncio.sleep(0.1)
        running.script.lead(2)
        replaced_at = now()
        assert set(await asyncio.gather(*sending)) == {SERVICE_NOT_AVAILABLE}
        assert now() - replaced_at < 0.1
        assert await sent(asker) in {SERVICE_NOT_AVAILABLE, SYSTEM_BUSY}
        await asyncio.sleep(1)
        assert await sent(asker) == SYSTEM_BUSY
        running.network.heal()

    play(test, role="SYNC_MASTER")


def test_held_pulls_of_a_master_that_is_replaced_are_answered() -> None:
    async def test(running: ScriptedGroup) -> None:
        held = asyncio.ensure_future(running.asker(1).pull("T", 0, hold_ms=20_000))
        await asyncio.sleep(0.1)
        running.script.lead(2)
        replaced_at = now()
        assert (await held).code == NOT_FOUND
        assert now() - replaced_at < 0.1

    play(test)


def test_an_asynchronous_master_accepts_nothing_when_its_lease_is_over() -> None:
    async def test(running: ScriptedGroup) -> None:
        elector = running.script.electors[1]
        elector.writes_until = now()
        assert await sent(running.asker(1)) == SERVICE_NOT_AVAILABLE
        elector.writes_until = now() + 1
        assert await sent(running.asker(1)) == SUCCESS

    play(test)


def test_a_synchronous_one_does_for_what_waits_for_the_others() -> None:
    async def test(running: ScriptedGroup) -> None:
        running.script.electors[1].writes_until = now()
        assert await sent(running.asker(1)) == SUCCESS
        assert await sent(running.asker(1), properties="WAIT\x01false\x02") == SERVICE_NOT_AVAILABLE

    play(test, role="SYNC_MASTER")


def test_a_master_that_is_killed_and_back_at_once_leads_in_a_new_epoch() -> None:
    async def test(running: ScriptedGroup) -> None:
        await running.asker(1).send("T", b"kept")
        running.machine(1).kill()
        await running.machine(1).start()
        await running.led()
        assert running.script.view.epoch == 2
        assert await running.asker(1).bodies("T") == [b"kept"]

    play(test, size=1)


def test_the_best_member_claims_when_the_elector_is_back() -> None:
    async def test(running: ScriptedGroup) -> None:
        running.script.is_away = True
        running.machine(1).kill()
        await asyncio.sleep(2 * LEASE)
        assert running.script.view.master == 1
        running.script.is_away = False
        await running.led(but=1)

    play(test)


def test_a_member_outside_of_the_set_does_not_claim() -> None:
    async def test(running: ScriptedGroup) -> None:
        running.script.decide(in_sync=frozenset({1}))
        running.machine(1).kill()
        await asyncio.sleep(2 * LEASE)
        assert running.script.claims == [1]

    play(test)


def test_delayed_messages_go_on_at_the_next_master() -> None:
    async def test(running: ScriptedGroup) -> None:
        await running.asker(1).send("T", b"soon")
        await running.asker(1).send("T", b"late", DELAY="2")
        await running.copied()
        running.machine(1).kill()
        master = await running.led(but=1)
        assert await running.asker(master).bodies("T") == [b"soon"]
        await asyncio.sleep(10)
        assert await running.asker(master).bodies("T") == [b"soon", b"late"]

    play(test)
