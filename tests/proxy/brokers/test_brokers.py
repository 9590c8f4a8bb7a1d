"""Routes, groups and addresses, while brokers are away and clients name what is not there."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.message.pop_handle import PopHandle
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import TOPIC, Client, World, message, play


def routes_asked(world: World) -> list[str]:
    """Has the fetches of routes listed."""
    topics, asked = world.proxy._brokers.topics, list[str]()
    fetch = topics._fetch

    async def fetched(name: str) -> object:
        asked.append(name)
        return await fetch(name)

    topics._fetch = fetched  # type: ignore[assignment]
    return asked


@pytest.mark.parametrize("silent", [0, 1])
def test_one_silent_broker_holds_up_no_new_group(silent: int) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5, broker="broker-0")
        await client.receive(hold=5, broker="broker-1")
        world.cluster.brokers[silent].pause()
        began = asyncio.get_running_loop().time()
        got = await client.receive(hold=5, group="fresh", broker=f"broker-{1 - silent}")
        assert got.code == 40401
        assert asyncio.get_running_loop().time() - began < 7
        world.cluster.brokers[silent].wake()

    play(test, brokers=2)


def test_a_group_stays_known_while_the_broker_that_has_it_is_away() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_group("ordered", consume_message_orderly=True)
        await client.receive(hold=5, broker="broker-1")
        assert (await world.proxy._brokers.group("ordered")) is not None
        world.cluster.brokers[0].pause()
        for _ in range(20):
            found = await world.proxy._brokers.group("ordered")
            assert found is not None
            assert found.consume_message_orderly
            await asyncio.sleep(1)
        world.cluster.brokers[0].wake()

    config = ProxyConfig(port=8081, route_refresh_ms=2_000)
    play(test, brokers=2, config=config, broker=BrokerConfig(auto_create_groups=False))


def test_a_handle_that_names_no_broker_costs_others_no_routes() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        await asyncio.sleep(5)
        asked = routes_asked(world)
        now_ms = 10**15
        for at in range(200):
            handle = PopHandle(0, now_ms, 60_000, 0, "0", f"nobody-{at}", 0, 0).encode()
            assert await client.ack(f"{handle} 1") == [pb.BAD_REQUEST]
        assert len(asked) <= 2
        assert world.proxy._brokers.topics.known(TOPIC) is not None

    play(test)


def test_a_topic_that_is_gone_leaves_the_broker_known_and_is_found_when_it_is_made_again() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_topic("other")
        await client.receive(hold=5)
        await client.receive(hold=5, topic="other")
        assert (await world.broker(DeleteTopic(topic=TOPIC))).code == 0
        assert (await client.receive(hold=5)).code != 40401
        assert world.proxy._brokers.address("broker-0") is not None
        await world.make_topic(kind="FIFO")
        await asyncio.sleep(3)
        refused = await client.send(message(message_type=pb.NORMAL))
        assert refused.status.code == pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        sent = await client.send(message(message_type=pb.FIFO, message_group="g"))
        assert sent.status.code == pb.OK

    play(test)


def test_a_master_that_moved_is_found_by_acknowledgements() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        await client.send(message())
        got = await client.receive(hold=5)
        machine = world.cluster.brokers[0]
        machine.kill()
        await machine.start()
        await asyncio.sleep(1)
        for _ in range(20):
            if await client.ack(*got.handles) == [pb.OK]:
                return
            await asyncio.sleep(0.5)
        raise AssertionError("it is not acknowledged")

    play(test)
