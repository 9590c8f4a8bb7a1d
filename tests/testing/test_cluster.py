"""Machines that start, stop, die and start again."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import DirectoryInUse
from sprocket.client.producer import Producer
from sprocket.message.message import Message
from sprocket.testing.cluster import Cluster
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer

TOPIC, QUEUES = "orders", 2


async def started(network: Network) -> tuple[Cluster, Observer]:
    cluster = Cluster(network)
    await cluster.start()
    observer = Observer(cluster, TOPIC, QUEUES, group="g")
    await observer.create_topic()
    return cluster, observer


async def send(cluster: Cluster, name: str, count: int) -> None:
    process, world = cluster.client(name)

    async def main() -> None:
        servers = cluster.nameserver_addresses
        async with Producer("p", nameservers=servers, world=world) as producer:
            for number in range(count):
                await producer.send(Message(TOPIC, b"%d" % number))

    await process.run(main())


async def bodies(observer: Observer) -> list[bytes]:
    return sorted(m.body for messages in (await observer.stored()).values() for m in messages)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_messages_outlive_a_broker(way: str) -> None:
    async def main(network: Network) -> None:
        cluster, observer = await started(network)
        await send(cluster, "one", 20)
        (broker,) = cluster.brokers
        if way == "stop":
            await broker.stop()
        else:
            broker.kill()
        assert not broker.is_running
        await cluster.start()
        assert len(await bodies(observer)) == 20
        await send(cluster, "two", 5)
        assert len(await bodies(observer)) == 25
        await observer.close()
        await cluster.stop()

    simulate(main)


def test_a_killed_process_is_a_ghost_that_changes_nothing() -> None:
    async def main(network: Network) -> None:
        cluster, observer = await started(network)
        await send(cluster, "one", 3)
        (broker,) = cluster.brokers
        ghost = broker.disk
        broker.kill()
        left = {name: broker.disk.read(f"/data/config/{name}") for name in _files(broker.disk)}
        await asyncio.sleep(30)
        assert broker.disk is not ghost
        assert left == {n: broker.disk.read(f"/data/config/{n}") for n in _files(broker.disk)}
        await observer.close()

    simulate(main)


def test_a_server_that_cannot_start_says_why() -> None:
    async def main(network: Network) -> None:
        cluster, _ = await started(network)
        (broker,) = cluster.brokers
        assert isinstance(broker.disk, FaultyDisk)
        await broker.stop()
        lock = broker.disk.lock("/data")
        with pytest.raises(DirectoryInUse, match="in use"):
            await broker.start()
        assert not broker.is_running
        lock.release()
        await broker.start()
        await cluster.stop()

    simulate(main)


def _files(disk: object) -> list[str]:
    assert isinstance(disk, FaultyDisk)
    return disk.names("/data/config")
