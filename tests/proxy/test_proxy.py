"""A proxy over a real connection, and its end."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import ConfigError
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.proxy import SERVICE, Proxy
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.proxy.world import Client, consumer_settings, message, play, proxy_before
from tests.proxy.world import World as ProxyWorld

METHODS = {
    "QueryRoute", "Heartbeat", "SendMessage", "QueryAssignment", "ReceiveMessage", "AckMessage",
    "ForwardMessageToDeadLetterQueue", "EndTransaction", "Telemetry", "NotifyClientTermination",
    "ChangeInvisibleDuration", "RecallMessage", "SyncLiteSubscription",
}  # fmt: skip


def test_the_methods_are_those_of_rocketmqs_proxy() -> None:
    async def test(world: ProxyWorld, client: Client) -> None:
        assert {each.removeprefix(SERVICE) for each in world.proxy.methods} == METHODS

    play(test)


def test_a_proxy_needs_name_servers() -> None:
    with pytest.raises(ConfigError):
        Proxy(ProxyConfig(), clock=LoopClock(), entropy=SeededEntropy("x"))


def test_a_proxy_that_stops_gives_back_what_its_clients_had_in_hand() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network)
        await cluster.start()
        async with proxy_before(cluster, ProxyConfig(port=8081, drain_ms=100)) as world:
            await world.make_topic()
            client = Client(world.proxy)
            await client.connect(consumer_settings())
            await client.send(message())
            assert (await client.receive(renew=True)).bodies == [b"hello"]
            waiting = client.receiving(hold=20)
            await asyncio.sleep(1)
            began = asyncio.get_running_loop().time()
        assert (await waiting).code == 40401
        assert client.task is not None
        await client.task
        assert asyncio.get_running_loop().time() - began < 2
        async with proxy_before(cluster, ProxyConfig(port=8082)) as world:
            assert (await Client(world.proxy).receive(hold=20)).bodies == [b"hello"]

    simulate(main)
