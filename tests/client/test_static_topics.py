"""Every kind of client with a static topic whose queue has moved between two brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sprocket import (
    LitePullConsumer,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    StoredMessage,
)
from sprocket.admin import reading, static_topics
from sprocket.admin.caller import Caller
from sprocket.client.base.world import ClientEnvironment
from sprocket.message.queue import QueueId
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

QUEUE = QueueId("T", "__syslo__global__", 0)
EXPECTED = [(0, b"0"), (1, b"1"), (10_000, b"2"), (10_001, b"3")]


@asynccontextmanager
async def moved(network: Network) -> AsyncIterator[tuple[Caller, list[str], ClientEnvironment]]:
    """Two messages on each of two brokers, sent by our producer."""
    cluster = Cluster(network, brokers=2)
    await cluster.start()
    servers = cluster.nameserver_addresses
    _, world = cluster.client("client")
    async with Pool() as pool:
        caller = Caller(pool, servers)
        await static_topics.create(caller, "T", queues=1, brokers=["broker-0"], now_ms=1)
        async with Producer("p", nameservers=servers, world=world) as producer:
            for number in range(4):
                if number == 2:
                    await static_topics.move_queues(caller, "T", brokers=["broker-1"], now_ms=1)
                sent = await producer.send(Message("T", b"%d" % number))
                assert (sent.queue, sent.queue_offset) == (QUEUE, EXPECTED[number][0])
        yield caller, servers, world
    await cluster.stop()


def test_a_pull_consumer_reads_logical_queues() -> None:
    async def main(network: Network) -> None:
        async with (
            moved(network) as (_, servers, world),
            PullConsumer("g", nameservers=servers, world=world) as consumer,
        ):
            assert await consumer.queues("T") == [QUEUE]
            offset, found = 0, []
            while len(found) < 4:
                pulled = await consumer.pull(QUEUE, offset)
                found += [(each.queue_offset, each.body) for each in pulled.messages]
                assert all(each.queue == QUEUE for each in pulled.messages)
                offset = pulled.next_offset
            assert found == EXPECTED
            assert await consumer.min_offset(QUEUE) == 0
            assert await consumer.max_offset(QUEUE) == 10_002
            await consumer.commit(QUEUE, 1)
            assert await consumer.committed(QUEUE) == 1

    simulate(main)


def test_a_lite_pull_consumer_reads_logical_queues() -> None:
    async def main(network: Network) -> None:
        async with moved(network) as (_, servers, world):
            consumer = LitePullConsumer("g", nameservers=servers, world=world, start="first")
            consumer.subscribe("T")
            async with consumer:
                found: list[StoredMessage] = []
                while len(found) < 4:
                    found += await consumer.poll()
                assert [(each.queue_offset, each.body) for each in found] == EXPECTED

    simulate(main)


def test_what_fails_comes_again_though_another_broker_holds_it() -> None:
    async def main(network: Network) -> list[tuple[bytes, int]]:
        got: list[tuple[bytes, int]] = []

        async def listener(message: StoredMessage) -> None:
            got.append((message.body, message.reconsume_times))
            if message.body == b"0" and not message.reconsume_times:
                raise ValueError("not now")

        async with moved(network) as (_, servers, world):
            consumer = PushConsumer("g", nameservers=servers, world=world, start="first")
            consumer.subscribe("T", listener=listener)
            async with consumer:
                await asyncio.sleep(60)
        return got

    assert sorted(simulate(main)) == [(b"0", 0), (b"0", 1), (b"1", 0), (b"2", 0), (b"3", 0)]


def test_an_operator_reads_all_messages_of_a_static_topic() -> None:
    async def main(network: Network) -> list[bytes]:
        async with moved(network) as (caller, _, _):
            return [message.body async for message in reading.messages(caller, "T")]

    assert sorted(simulate(main)) == [b"0", b"1", b"2", b"3"]
