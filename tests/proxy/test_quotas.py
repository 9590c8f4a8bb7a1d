"""A client of a proxy in a broker's process has the quotas that the broker sets."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import (
    TOPIC,
    Client,
    World,
    consumer_settings,
    message,
    play,
    producer_settings,
)


def limited(*quotas: str) -> BrokerConfig:
    return BrokerConfig(port=10911, quotas=quotas)


def test_sends_above_the_limit_of_a_client_id_are_too_many_requests() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        other = Client(world.proxy, "other@1")
        for each in (client, other):
            await each.connect(producer_settings(TOPIC))
        replies = await asyncio.gather(*(client.send(message()) for _ in range(20)))
        codes = [reply.status.code for reply in replies]
        assert set(codes[:3]) == {pb.OK}
        assert set(codes[10:]) == {pb.TOO_MANY_REQUESTS}
        assert "client me@1 is over its limit" in replies[-1].status.message
        assert (await other.send(message())).status.code == pb.OK
        await asyncio.sleep(1.0)
        assert (await client.send(message())).status.code == pb.OK
        assert await world.count(TOPIC) == codes.count(pb.OK) + 2

    play(test, inner=True, broker=limited("client me@* requests=5"))


def test_receives_above_the_limit_wait_and_get_their_messages() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_group()
        await client.connect(consumer_settings())
        loop = asyncio.get_running_loop()
        for _ in range(6):
            await Client(world.proxy, "producer@1").send(message())
        began = loop.time()
        found = [await client.receive(count=1) for _ in range(6)]
        assert [each.code for each in found] == [pb.OK] * 6
        assert sum(len(each.messages) for each in found) == 6
        assert loop.time() - began == pytest.approx(4.0, abs=1.1)

    play(test, inner=True, broker=limited("group workers requests=1/2"))
