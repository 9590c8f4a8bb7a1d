"""Clients that come and go, connections that break, a broker that is killed: no message is lost."""

from __future__ import annotations

import asyncio
import random

import pytest

from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.proxy.world import Client, World, consumer_settings, message, proxy_before

MESSAGES = 30


class Consumers:
    """Consumers that receive, acknowledge, give up, and vanish, as a seed says."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.received: set[bytes] = set()
        self.acknowledged: set[bytes] = set()

    async def run(self, number: int, until: asyncio.Event) -> None:
        """One place for a consumer; a new one takes it when the last has vanished."""
        lives = 0
        while not until.is_set():
            lives += 1
            client = Client(self.world.proxy, f"consumer-{number}@{lives}")
            await client.connect(consumer_settings(kind=pb.PUSH_CONSUMER))
            while self.chance.random() > 0.15 and not until.is_set():
                await self._once(client)
            client.disconnect()

    async def _once(self, client: Client) -> None:
        renew = self.chance.random() < 0.5
        waiting = client.receiving(hold=5, count=4, invisible=10, renew=renew)
        if self.chance.random() < 0.3:
            await asyncio.sleep(self.chance.random())
            waiting.cancel()
        done, _ = await asyncio.wait([waiting])
        if waiting.cancelled():
            return
        got = done.pop().result()
        for body, handle in zip(got.bodies, got.handles, strict=True):
            self.received.add(body)
            if self.chance.random() < 0.7 and await client.ack(handle) == [pb.OK]:
                self.acknowledged.add(body)
        await client.ask("Heartbeat", pb.HeartbeatRequest(group=pb.Resource(name="workers")))
        await asyncio.sleep(self.chance.random())


async def sent(world: World, chance: random.Random) -> set[bytes]:
    """Sends messages; those whose sends were acknowledged."""
    client = Client(world.proxy, "producer@1")
    stored = set()
    for at in range(MESSAGES):
        body = b"%d" % at
        reply = await client.send(message(body, message_id=f"ID{at}"))
        if reply.status.code == pb.OK:
            stored.add(body)
        await asyncio.sleep(chance.random())
    return stored


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])
def test_every_message_is_received_and_can_be_acknowledged(inner: bool, seed: int) -> None:
    chance = random.Random(seed)

    async def main(network: Network) -> None:
        cluster = Cluster(network, seed)
        await cluster.start()
        async with proxy_before(cluster, ProxyConfig(port=8081), inner=inner) as world:
            await world.make_topic(queues=2)
            await Client(world.proxy).receive(hold=5)
            consumers, over = Consumers(world, chance), asyncio.Event()
            tasks = [asyncio.ensure_future(consumers.run(n, over)) for n in range(3)]
            sending = asyncio.ensure_future(sent(world, chance))
            if not inner:
                await asyncio.sleep(10 + 10 * chance.random())
                cluster.brokers[0].kill()
                await asyncio.sleep(2 * chance.random())
                await cluster.brokers[0].start()
            stored = await sending
            assert len(stored) > MESSAGES / 2
            for _ in range(60):
                if stored <= consumers.acknowledged:
                    break
                await asyncio.sleep(10)
            over.set()
            await asyncio.gather(*tasks)
            assert stored <= consumers.received
            assert stored <= consumers.acknowledged

    simulate(main, seed=seed)
