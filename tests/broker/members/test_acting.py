"""A slave that stands for its master, in whole simulated clusters."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    RouteNotFound,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemBusy,
    TopicNotFound,
)
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.nameserver.config import NameServerConfig
from sprocket.protocol.bodies import LockBody, LockedBody, Queue, ReplicaStateBody, Route
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.election import (
    ExchangeReplicaAddress,
    ExchangeReplicaAddressReply,
)
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.offset import OffsetReply, QueryOffset
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage
from sprocket.protocol.requests.replica import HeldLeases, ReplicaState
from sprocket.protocol.requests.route import RouteOfTopic, SmallestNumberChanged
from sprocket.protocol.requests.transaction import EndTransaction
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster, Machine
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.client.fakes import until

TOPIC, GROUP = "orders", "billing"
QUEUE = QueueId(TOPIC, "broker-0", 0)
ACTING = BrokerConfig(acting_master=True, registration_ms=5_000)


def cluster_of(network: Network, broker: BrokerConfig = ACTING) -> Cluster:
    return Cluster(
        network,
        "acting",
        slaves=2,
        broker=broker,
        nameserver=NameServerConfig(acting_masters=True),
    )


async def asked(machine: Machine, header: Header, port: int = BROKER_PORT) -> Command:
    async with Pool() as pool:
        address = f"{machine.address}:{port}"
        return await pool.ask(address, header, deadline=Deadline.after(5))


async def committed(machine: Machine) -> int:
    header = QueryOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, set_zero_if_not_found=True)
    return (await asked(machine, header)).read(OffsetReply).offset


async def route(cluster: Cluster) -> tuple[dict[int, str], int]:
    reply = await asked(cluster.nameservers[0], RouteOfTopic(topic=TOPIC), 9876)
    found = Route.decode(reply.body)
    return found.broker_datas[0].broker_addrs, found.queue_datas[0].perm


async def pull(machine: Machine) -> Command:
    header = PullMessage(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=0,
        queue_offset=0,
        max_msg_nums=1,
        sys_flag=SUBSCRIPTION,
        subscription="*",
    )
    return await asked(machine, header)


class Working:
    """A producer and an ordered consumer that is slow."""

    def __init__(self, cluster: Cluster) -> None:
        servers = cluster.nameserver_addresses
        self.sending, world = cluster.client("sender")
        self.producer = Producer("p", nameservers=servers, world=world)
        self.reading, world = cluster.client("reader")
        config = ConsumerConfig(commit_ms=500, pull_batch=4, window_count_max=8)
        self.consumer = PushConsumer(
            GROUP, nameservers=servers, world=world, start="first", ordered=True, config=config
        )
        self.seen: list[int] = []

        async def listen(message: StoredMessage) -> None:
            await asyncio.sleep(0.2)
            self.seen.append(int(message.body))

        self.consumer.subscribe(TOPIC, listener=listen)

    async def send(self, number: int) -> None:
        message = Message(TOPIC, b"%d" % number)
        await self.sending.run(self.producer.send(message, queue=QUEUE, timeout_ms=8_000))


def test_a_slave_is_read_and_keeps_offsets_and_leases_until_the_master_takes_them_over() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        master, (first, second) = cluster.brokers[0], cluster.slaves
        work = Working(cluster)
        await work.sending.run(work.producer.start())
        for number in range(60):
            await work.send(number)
        await asyncio.sleep(1.0)
        with pytest.raises(SystemBusy, match="may not be read"):
            await pull(first)
        await work.reading.run(work.consumer.start())
        await until(lambda: len(work.seen) > 10)

        master.kill()
        await asyncio.sleep(2.0)
        port = f":{BROKER_PORT}"
        assert await route(cluster) == ({0: first.address + port, 2: second.address + port}, 4)
        assert (await pull(first)).body
        with pytest.raises(SystemBusy):
            await pull(second)
        with pytest.raises(SlaveNotAvailable):
            await asked(
                first,
                EndTransaction(
                    producer_group="p",
                    tran_state_table_offset=0,
                    commit_log_offset=0,
                    commit_or_rollback=8,
                ),
            )
        with pytest.raises(RouteNotFound):
            await work.send(60)
        await until(lambda: len(work.seen) == 60)
        assert work.seen == list(range(60)), "in order, each once"
        await asyncio.sleep(2.0)
        await work.reading.run(work.consumer.close())
        assert await committed(first) == 60

        await master.start()
        assert await committed(master) == 60, "though nobody has committed there since"
        addresses, permission = await route(cluster)
        assert (addresses[0], permission) == (master.address + port, 6)
        await work.send(60)
        await asyncio.sleep(2.0)
        with pytest.raises(SystemBusy):
            await pull(first)
        await work.sending.run(work.producer.close())
        await cluster.stop()

    simulate(main)


async def locked(machine: Machine, client: str) -> bool:
    """Whether a client gets the lease on the queue; no answer is none."""
    queue = Queue(topic=TOPIC, broker_name="broker-0", queue_id=0)
    body = LockBody(client_id=client, consumer_group=GROUP, mq_set=[queue]).encode()
    address, deadline = f"{machine.address}:{BROKER_PORT}", Deadline.after(5)
    async with Pool() as pool:
        try:
            reply = await pool.ask(address, LockQueues(), body=body, deadline=deadline)
        except ServiceNotAvailable:
            return False
    return bool(LockedBody.decode(reply.body).locked)


def test_no_queue_is_leased_to_two_clients_while_a_slave_stands_for_the_master() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        master, (first, _) = cluster.brokers[0], cluster.slaves
        work = Working(cluster)
        await work.sending.run(work.producer.start())
        await work.send(0)
        assert await locked(master, "one")
        await asyncio.sleep(2.0)
        assert not await locked(first, "two"), "a slave that stands for nobody leases nothing"

        master.kill()
        await asyncio.sleep(2.0)
        assert not await locked(first, "two"), "the master's leases count on"
        assert await locked(first, "one")
        await asyncio.sleep(70.0)  # the client `one` is gone
        assert await locked(first, "two")

        await master.start()
        assert not await locked(first, "two"), "who has handed the leases over gives none"
        assert not await locked(master, "one")
        assert await locked(master, "two")
        await asyncio.sleep(5.0)
        assert not await locked(first, "three")
        await work.sending.run(work.producer.close())
        await cluster.stop()

    simulate(main)


def test_a_slave_leases_again_if_the_master_that_asked_is_lost_before_it_is_back() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        master, (first, _) = cluster.brokers[0], cluster.slaves
        work = Working(cluster)
        await work.sending.run(work.producer.start())
        await work.send(0)
        master.kill()
        await asyncio.sleep(2.0)
        assert await locked(first, "one")
        await asked(first, HeldLeases())
        assert not await locked(first, "one")
        await asyncio.sleep(11.0)
        assert await locked(first, "one")
        assert not await locked(first, "two")
        await work.sending.run(work.producer.close())
        await cluster.stop()

    simulate(main)


def test_the_next_slave_stands_for_both_and_without_the_setting_none_does() -> None:
    async def main(network: Network, is_on: bool) -> None:
        cluster = cluster_of(network, replace(ACTING, acting_master=is_on))
        await cluster.start()
        work = Working(cluster)
        await work.sending.run(work.producer.start())
        await work.send(0)
        await asyncio.sleep(1.0)
        cluster.brokers[0].kill()
        cluster.slaves[0].kill()
        await asyncio.sleep(2.0)
        second = cluster.slaves[1]
        number = 0 if is_on else 2
        assert await route(cluster) == (
            {number: f"{second.address}:{BROKER_PORT}"}, 4 if is_on else 6
        )  # fmt: skip
        if is_on:
            assert (await pull(second)).body
        else:
            with pytest.raises(SystemBusy):
                await pull(second)
        await work.sending.run(work.producer.close())
        await cluster.stop()

    for is_on in (True, False):
        simulate(lambda network, is_on=is_on: main(network, is_on))  # type: ignore[misc]


def test_a_frozen_master_is_missed_after_ten_seconds() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        work = Working(cluster)
        await work.sending.run(work.producer.start())
        await work.send(0)
        cluster.brokers[0].pause()
        await asyncio.sleep(17.0)
        addresses, permission = await route(cluster)
        assert (addresses[0], permission) == (f"{cluster.slaves[0].address}:{BROKER_PORT}", 4)
        cluster.brokers[0].wake()
        await asyncio.sleep(10.0)
        addresses, permission = await route(cluster)
        assert (addresses[0], permission) == (f"{cluster.brokers[0].address}:{BROKER_PORT}", 6)
        await work.sending.run(work.producer.close())
        await cluster.stop()

    simulate(main)


def test_a_notice_only_has_it_ask_at_once_who_lives() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        slave = cluster.slaves[0]
        await asyncio.sleep(2.0)
        await asked(slave, SmallestNumberChanged(min_broker_id=1, broker_name="broker-0"))
        await asyncio.sleep(0.2)
        with pytest.raises(SystemBusy):
            await pull(slave)
        cluster.brokers[0].kill()
        await asyncio.sleep(0.01)
        await asked(slave, SmallestNumberChanged(min_broker_id=1))
        await asyncio.sleep(0.05)
        with pytest.raises(TopicNotFound):
            await pull(slave)
        await cluster.stop()

    simulate(main)


async def replicates_from(slave: Machine) -> str | None:
    body = ReplicaStateBody.decode((await asked(slave, ReplicaState())).body)
    return body.ha_client_runtime_info.master_addr if body.ha_client_runtime_info else None


def test_where_a_master_replicates_is_believed_from_itself_while_there_is_none() -> None:
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        master, slave = cluster.brokers[0], cluster.slaves[0]
        await asyncio.sleep(2.0)
        told = (await asked(master, ExchangeReplicaAddress())).read(ExchangeReplicaAddressReply)
        assert told.master_address == f"{master.address}:{BROKER_PORT}"
        assert told.master_ha_address == f"{master.address}:{BROKER_PORT + 1}"
        assert (await asked(slave, ExchangeReplicaAddress())).read(ExchangeReplicaAddressReply) == (
            ExchangeReplicaAddressReply()
        )
        liar, _ = cluster.client("liar")
        host = network.address_of("liar")
        own = ExchangeReplicaAddress(master_address=f"{host}:1", master_ha_address=f"{host}:2")
        other = ExchangeReplicaAddress(master_address="10.9.9.9:1", master_ha_address="10.9.9.9:2")
        for lie in (own, other):
            await liar.run(asked(slave, lie))
            assert await replicates_from(slave) == told.master_ha_address
        master.kill()
        await asyncio.sleep(2.0)
        await liar.run(asked(slave, other))
        assert await replicates_from(slave) == told.master_ha_address
        await liar.run(asked(slave, own))
        assert await replicates_from(slave) == f"{host}:2"
        await master.start()
        await asyncio.sleep(3.0)
        assert await replicates_from(slave) == told.master_ha_address
        await cluster.stop()

    simulate(main)


def test_a_slave_copies_as_soon_as_its_master_is_back_however_long_that_was_away() -> None:
    # A slave that fails to connect again and again waits for up to 15 s before the next try.
    async def main(network: Network) -> None:
        cluster = cluster_of(network)
        await cluster.start()
        await asyncio.sleep(2.0)
        master = cluster.brokers[0]
        for seconds in (40.0, 47.0, 55.0):
            master.kill()
            await asyncio.sleep(seconds)
            await master.start()
            await asyncio.sleep(0.5)
            assert len(master.server._inside.parts.replication.sender.links) == 2
        await cluster.stop()

    simulate(main)
