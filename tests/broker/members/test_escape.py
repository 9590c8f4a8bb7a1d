"""A slave that stands for its master delivers at another one, in whole simulated clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.transactional_producer import Outcome, TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.nameserver.config import NameServerConfig
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import Asker

TOPIC = "orders"
QUEUE = QueueId(TOPIC, "broker-0", 0)
Test = Callable[["Escaping"], Awaitable[None]]


class Escaping:
    """Two masters; the first one has a slave. A producer sends to the first one."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self.cluster, self.network = cluster, network
        self.master, self.other = cluster.brokers
        self.slave = cluster.slaves[0]
        self.process, world = cluster.client("sender")
        self.producer = Producer("p", nameservers=cluster.nameserver_addresses, world=world)

    async def send(self, body: bytes, topic: str = TOPIC, **wish: int) -> None:
        message = Message(topic, body, **wish)  # type: ignore[arg-type]
        queue = QUEUE._replace(topic=topic)
        await self.process.run(self.producer.send(message, queue=queue, timeout_ms=5_000))

    def in_seconds(self, seconds: float) -> int:
        return EPOCH_MS + int((self.network.now() + seconds) * 1000)

    async def bodies(self, machine: Machine, topic: str = TOPIC) -> list[bytes]:
        asker = Asker(machine.server)
        async with asker.pool:
            return sorted(await asker.bodies(topic))

    async def create(self, topic: str, *machines: Machine) -> None:
        for machine in machines:
            asker = Asker(machine.server)
            async with asker.pool:
                await asker.create(topic)

    async def lose(self, *, seconds: float = 0.0) -> None:
        await asyncio.sleep(1.5)
        self.master.kill()
        await asyncio.sleep(seconds)


def play(test: Test, **settings: object) -> None:
    async def main(network: Network) -> None:
        config: dict[str, object] = {"acting_master": True, "remote_escape": True}
        cluster = Cluster(
            network,
            "escape",
            brokers=2,
            slaves=1,
            nameserver=NameServerConfig(acting_masters=True),
            broker=BrokerConfig(
                registration_ms=2_000,
                transaction_timeout_ms=2_000,
                transaction_check_ms=1_000,
                **(config | settings),  # type: ignore[arg-type]
            ),
        )
        await cluster.start()
        running = Escaping(cluster, network)
        await running.create(TOPIC, running.master, running.other)
        await asyncio.sleep(3.0)
        await running.process.run(running.producer.start())
        await test(running)
        await running.process.run(running.producer.close())
        await cluster.stop()

    simulate(main)


def test_messages_that_fall_due_are_at_the_other_master_and_do_not_come_again() -> None:
    async def test(running: Escaping) -> None:
        await running.send(b"level", delay_level=2)
        await running.send(b"time", deliver_at=running.in_seconds(8))
        await running.send(b"later", deliver_at=running.in_seconds(40))
        await running.lose(seconds=10)
        assert await running.bodies(running.other) == [b"level", b"time"]
        await running.master.start()
        await asyncio.sleep(40)
        assert await running.bodies(running.other) == [b"level", b"time"]
        assert await running.bodies(running.master) == [b"later"]

    play(test)


def test_a_slave_that_was_killed_goes_on_and_as_the_master_too() -> None:
    async def test(running: Escaping) -> None:
        for number in range(4):
            await running.send(b"level %d" % number, delay_level=2)
            await running.send(b"time %d" % number, deliver_at=running.in_seconds(6))
        await running.send(b"later", delay_level=4)
        await running.lose(seconds=8)
        delivered = await running.bodies(running.other)
        assert len(delivered) == 8
        running.slave.kill()
        await running.slave.start()
        await asyncio.sleep(8)
        assert await running.bodies(running.other) == delivered, "nothing comes again"
        await running.slave.stop()
        await running.cluster.promote(running.slave, role="ASYNC_MASTER", id=0)
        await asyncio.sleep(25)
        assert await running.bodies(running.other) == delivered
        assert await running.bodies(running.slave) == [b"later"]

    play(test)


def test_nothing_is_delivered_elsewhere_unless_that_is_set() -> None:
    async def test(running: Escaping) -> None:
        await running.send(b"level", delay_level=2)
        await running.lose(seconds=15)
        assert not await running.bodies(running.other)
        await running.master.start()
        await asyncio.sleep(3)
        assert await running.bodies(running.master) == [b"level"]

    play(test, remote_escape=False)


def test_what_no_other_master_takes_waits_and_holds_nothing_else_up() -> None:
    async def test(running: Escaping) -> None:
        await running.create("here", running.master)
        await asyncio.sleep(3.0)
        await running.send(b"waits", "here", delay_level=1)
        await running.send(b"waits too", "here", deliver_at=running.in_seconds(2))
        await running.send(b"goes", delay_level=1)
        await running.send(b"goes too", deliver_at=running.in_seconds(2.5))
        running.master.kill()
        await asyncio.sleep(10)
        assert await running.bodies(running.other) == [b"goes", b"goes too"]
        await running.master.start()
        await asyncio.sleep(5)
        assert await running.bodies(running.master, "here") == [b"waits", b"waits too"]
        assert not await running.bodies(running.master)

    play(test, role="SYNC_MASTER", copies_min=1)


def test_a_recalled_message_is_delivered_nowhere() -> None:
    async def test(running: Escaping) -> None:
        async def both() -> None:
            message = Message(TOPIC, b"back", deliver_at=running.in_seconds(10))
            sent = await running.producer.send(message, queue=QUEUE)
            assert sent.recall_handle is not None
            await running.producer.recall(TOPIC, sent.recall_handle)

        await running.process.run(both())
        await running.send(b"stays", deliver_at=running.in_seconds(10))
        await running.lose(seconds=15)
        assert await running.bodies(running.other) == [b"stays"]
        await running.master.start()
        await asyncio.sleep(5)
        assert not await running.bodies(running.master)

    play(test)


def test_an_undecided_transaction_is_asked_about_by_the_other_master_and_ends_once() -> None:
    async def test(running: Escaping) -> None:
        process, world = running.cluster.client("transactions")
        ends = {b"good": Outcome.COMMIT, b"bad": Outcome.ROLLBACK}
        is_known = False

        async def check(message: StoredMessage) -> Outcome:
            return ends[bytes(message.body)] if is_known else Outcome.UNKNOWN

        producer = TransactionalProducer(
            "t", nameservers=running.cluster.nameserver_addresses, world=world, check=check
        )

        async def begin() -> None:
            await producer.start()
            for body in ends:
                async with producer.transaction(Message(TOPIC, body), queue=QUEUE) as transaction:
                    transaction.leave_open()

        await process.run(begin())
        await asyncio.sleep(0.5)
        running.master.kill()
        await asyncio.sleep(10)
        assert not await running.bodies(running.other)
        is_known = True
        await asyncio.sleep(5)
        assert await running.bodies(running.other) == [b"good"]
        await running.master.start()
        await asyncio.sleep(20)
        assert await running.bodies(running.other) == [b"good"]
        assert not await running.bodies(running.master)
        assert not len(running.master.server._parts.tables.ledger)
        await process.run(producer.close())

    play(test)


def test_a_message_that_failed_is_retried_at_the_other_master_as_often_as_it_was_to_be() -> None:
    async def test(running: Escaping) -> None:
        process, world = running.cluster.client("reader")
        consumer = PushConsumer(
            "g", nameservers=running.cluster.nameserver_addresses, world=world, start="first",
            config=ConsumerConfig(route_refresh_ms=1_000),
        )  # fmt: skip
        seen: list[tuple[str, int]] = []

        async def listen(message: StoredMessage) -> None:
            seen.append((message.topic, message.reconsume_times))
            if message.reconsume_times < 2:
                raise LookupError("not yet")

        consumer.subscribe(TOPIC, listener=listen)
        await process.run(consumer.start())
        await running.send(b"fails")
        await asyncio.sleep(3)
        assert [times for _, times in seen] == [0]
        running.master.kill()
        await asyncio.sleep(90)
        assert [times for _, times in seen] == [0, 1, 2]
        await running.master.start()
        await asyncio.sleep(30)
        assert [times for _, times in seen] == [0, 1, 2]
        await process.run(consumer.close())

    play(test)


def test_a_master_that_only_name_servers_have_lost_delivers_by_itself() -> None:
    async def test(running: Escaping) -> None:
        await running.send(b"level", delay_level=4)
        await asyncio.sleep(1.5)
        nameserver = running.cluster.nameservers[0]
        running.network.cut(running.master.name, nameserver.name)
        await asyncio.sleep(35)
        assert running.slave.server._parts.acting.is_acting
        assert not await running.bodies(running.other)
        assert await running.bodies(running.master) == [b"level"]
        running.network.heal()
        await asyncio.sleep(15)
        assert not await running.bodies(running.other)

    play(test)


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_what_is_being_sent_ends_before_the_master_delivers(seconds: float) -> None:
    async def test(running: Escaping) -> None:
        for number in range(6):
            await running.send(b"%d" % number, deliver_at=running.in_seconds(6))
        await running.lose(seconds=1)
        running.network.slow(running.slave.name, running.other.name, 0.6)
        await asyncio.sleep(6 + seconds)
        await running.master.start()
        running.network.heal()
        await asyncio.sleep(10)
        found = await running.bodies(running.master) + await running.bodies(running.other)
        assert sorted(found) == [b"%d" % number for number in range(6)]
        assert await running.bodies(running.other)

    play(test)
