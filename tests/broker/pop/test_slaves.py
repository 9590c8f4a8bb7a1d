"""What a slave has of popped messages, and goes on with when it becomes the master."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from sprocket.protocol.bodies import RequestMode, RequestModes
from sprocket.protocol.requests.group import AllRequestModes, SetRequestMode
from sprocket.protocol.requests.offset import ResetOffset
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import SUCCESS, Asker
from tests.broker.pop import popping
from tests.broker.pop.popping import GONE, POLLING_TIMEOUT, Popped, ack, lag
from tests.broker.pop.test_pops import filled

pop = partial(popping.pop, broker="broker-0")
#: In this time a slave has all of its master's state, s.
SOON = 1.0


def play(
    before: Callable[[Asker], Awaitable[None]], after: Callable[[Asker], Awaitable[None]]
) -> None:
    """Plays `before` at a master, and `after` at its slave, once that is the master."""

    async def main(network: Network) -> None:
        async with group(network) as running:
            await before(running.askers[0])
            await asyncio.sleep(SOON)
            running.master.kill()
            (slave,) = running.slaves
            await slave.stop()
            await running.cluster.promote(slave, id=0, role="ASYNC_MASTER")
            running.askers[1].broker = slave.server
            await after(running.askers[1])

    simulate(main)


@pytest.mark.parametrize("order", [False, True])
def test_what_is_in_flight_stays_hidden_and_then_comes_again(order: bool) -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 4)
        found = await pop(asker, count=3, order=order)
        assert await ack(asker, found, 1) == [0]
        assert await lag(asker) == 3 + order

    async def after(asker: Asker) -> None:
        assert await lag(asker) == 3 + order
        found = await pop(asker, count=32, order=order)
        assert found.bodies == ([] if order else [b"3"])
        again = await pop(asker, count=32, order=order, hold_ms=30_000)
        assert again.bodies == [b"0", b"2", b"3"][: 2 + order]

    play(before, after)


def test_handles_from_before_a_reset_stay_void() -> None:
    kept: list[Popped] = []

    async def before(asker: Asker) -> None:
        await filled(asker, 4)
        kept.append(await pop(asker, count=2))
        kept.append(await pop(asker, count=2, order=True))
        reset = ResetOffset(topic="t", group="g", timestamp=-1, is_force=True, queue_id=0, offset=0)
        assert await asker.code(reset) == SUCCESS

    async def after(asker: Asker) -> None:
        for found in kept:
            assert await ack(asker, found) == [GONE, GONE]
        found = await pop(asker, count=4, order=True)
        assert found.bodies == [b"0", b"1", b"2", b"3"]

    play(before, after)


def test_a_topic_made_again_has_nothing_done_in_it() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 3)
        found = await pop(asker, count=3, order=True)
        assert await ack(asker, found, 1, 2) == [0, 0]
        assert await asker.code(DeleteTopic(topic="t")) == SUCCESS

    async def after(asker: Asker) -> None:
        await filled(asker, 3)
        assert (await pop(asker, count=3, order=True)).bodies == [b"0", b"1", b"2"]

    play(before, after)


def test_a_request_mode_is_at_the_slave_when_it_is_set() -> None:
    async def modes(asker: Asker) -> dict[str, dict[str, RequestMode]]:
        reply = await asker.call(AllRequestModes())
        return RequestModes.decode(reply.body).message_request_mode_map

    async def main(network: Network) -> None:
        async with group(network, role="SYNC_MASTER", copies=2) as running:
            master, slave = running.askers
            await test(running, master, slave)

    async def test(running: BrokerGroup, master: Asker, slave: Asker) -> None:
        await master.create("t")
        body = RequestMode(consumer_group="g", mode="POP", topic="t").encode()
        assert await master.code(SetRequestMode(), body) == SUCCESS
        assert (await modes(slave))["t"]["g"].mode == "POP"
        await running.slaves[0].stop()
        await running.slaves[0].start()
        slave.broker = running.slaves[0].server
        assert (await modes(slave))["t"]["g"].mode == "POP"

    simulate(main)


def test_nothing_is_given_out_while_too_few_have_the_record_of_it() -> None:
    async def main(network: Network) -> None:
        async with group(network, role="SYNC_MASTER", copies=2) as running:
            master, _ = running.askers
            await filled(master, 2)
            await asyncio.sleep(SOON)
            running.slaves[0].pause()
            assert (await pop(master, count=1)).code == POLLING_TIMEOUT
            assert (await pop(master, count=1, order=True)).code == POLLING_TIMEOUT
            running.slaves[0].wake()
            await asyncio.sleep(SOON)
            found = await pop(master, count=2, order=True, hold_ms=30_000)
            assert found.bodies == [b"1"]

    simulate(main)
