"""Consumers go on at a slave while its master is away, and neither lose nor repeat a position."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sprocket.base.deadline import Deadline
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.requests.offset import OffsetReply, QueryOffset
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster, Machine
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.client.fakes import until

TOPIC, GROUP = "orders", "billing"
QUEUE = QueueId(TOPIC, "broker-0", 0)


@dataclass
class Reading:
    """A cluster of a master and a slave, a producer, and a consumer with little ahead."""

    cluster: Cluster
    seen: list[int] = field(default_factory=list)

    async def begin(self) -> None:
        await self.cluster.start()
        self.sending, world = self.cluster.client("sender")
        servers = self.cluster.nameserver_addresses
        self.producer = Producer("p", nameservers=servers, world=world)
        await self.sending.run(self.producer.start())
        for number in range(60):
            await self.send(number)
        await asyncio.sleep(1.0)

    async def send(self, number: int) -> None:
        message = Message(TOPIC, b"%d" % number)
        await self.sending.run(self.producer.send(message, queue=QUEUE, timeout_ms=20_000))

    async def consume(self, name: str) -> None:
        self.process, world = self.cluster.client(name)
        config = ConsumerConfig(commit_ms=500, concurrency=1, pull_batch=4, window_count_max=8)
        self.consumer = PushConsumer(
            GROUP,
            nameservers=self.cluster.nameserver_addresses,
            world=world,
            start="first",
            config=config,
        )

        async def listen(message: StoredMessage) -> None:
            await asyncio.sleep(0.2)
            self.seen.append(int(message.body))

        self.consumer.subscribe(TOPIC, listener=listen)
        await self.process.run(self.consumer.start())

    async def committed(self, machine: Machine) -> int:
        header = QueryOffset(
            consumer_group=GROUP, topic=TOPIC, queue_id=0, set_zero_if_not_found=True
        )
        async with Pool() as pool:
            address = f"{machine.address}:{BROKER_PORT}"
            reply = await pool.ask(address, header, deadline=Deadline.after(5))
            return reply.read(OffsetReply).offset

    async def end(self) -> None:
        await self.process.run(self.consumer.close())
        await self.sending.run(self.producer.close())
        await self.cluster.stop()


def reading(network: Network) -> Reading:
    config = BrokerConfig(slave_reads=True, registration_ms=5_000)
    return Reading(Cluster(network, "slave reading", slaves=1, broker=config))


def test_a_consumer_reads_and_commits_at_the_slave_and_then_at_the_master_again() -> None:
    async def main(network: Network) -> None:
        one = reading(network)
        await one.begin()
        master, slave = one.cluster.brokers[0], one.cluster.slaves[0]
        await one.consume("consumer")
        await until(lambda: len(one.seen) > 10)
        master.kill()
        await until(lambda: len(one.seen) == 60)
        await asyncio.sleep(2.0)
        assert await one.committed(slave) == 60
        await master.start()
        assert await one.committed(master) < 60, "it knows only what was committed there"
        sent = asyncio.ensure_future(one.send(60))
        await until(lambda: len(one.seen) == 61)
        await sent
        await asyncio.sleep(3.0)
        assert one.seen == list(range(61)), "all once and in order"
        assert await one.committed(master) == 61
        await one.end()

    simulate(main)


def test_a_consumer_that_starts_while_the_master_is_away_goes_on_where_the_group_was() -> None:
    async def main(network: Network) -> None:
        one = reading(network)
        await one.begin()
        master, slave = one.cluster.brokers[0], one.cluster.slaves[0]
        await one.consume("first")
        await until(lambda: len(one.seen) > 10)
        master.kill()
        await until(lambda: len(one.seen) > 30)
        await one.process.run(one.consumer.close())
        position = await one.committed(slave)
        assert position == len(one.seen)
        await one.consume("second")
        await until(lambda: len(one.seen) == 60)
        assert one.seen == list(range(60))
        await one.end()

    simulate(main)
