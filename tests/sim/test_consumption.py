"""Where groups are, in simulated clusters: what operators and tools say, and who comes too late."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.admin import positions
from sprocket.admin.caller import Caller
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.protocol.requests.offset import UpdateOffset
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Fates, Network
from sprocket.testing.observer import Observer


def test_a_position_that_an_older_commit_overtook_is_told_again() -> None:
    async def main(network: Network) -> int:
        cluster = Cluster(network)
        await cluster.start()
        observer = Observer(cluster, "orders", 1, group="g")
        await observer.create_topic()
        process, world = cluster.client("one")
        servers = cluster.nameserver_addresses

        async def consume() -> None:
            async with (
                Producer("p", nameservers=servers, world=world) as producer,
                PushConsumer("g", nameservers=servers, world=world, start="first") as consumer,
            ):
                consumer.subscribe("orders", listener=nothing)
                for _ in range(5):
                    await producer.send(Message("orders", b"x"))
                await asyncio.sleep(30)
                offsets = cluster.brokers[0].server._parts.tables.offsets
                assert offsets.committed("g", "orders", 0) == 5
                offsets.commit("g", "orders", queue_number=0, offset=3)
                await asyncio.sleep(70)

        await process.run(consume())
        (committed,) = (await observer.committed()).values()
        await observer.close()
        await cluster.stop()
        return committed

    async def nothing(message: StoredMessage) -> None:
        pass

    assert simulate(main) == 5


def test_a_tool_moves_a_group_after_a_reset_and_a_consumer_that_did_not_hear_does_not() -> None:
    async def main(network: Network) -> tuple[list[int], int]:
        cluster = Cluster(network)
        await cluster.start()
        observer = Observer(cluster, "orders", 1, group="g")
        await observer.create_topic()
        (queue,) = await observer.ends()
        process, world = cluster.client("member")
        servers = cluster.nameserver_addresses
        got: list[int] = []

        async def consume() -> None:
            async with (
                Producer("p", nameservers=servers, world=world) as producer,
                PushConsumer("g", nameservers=servers, world=world, start="first") as consumer,
            ):
                consumer.subscribe("orders", listener=note)
                for _ in range(8):
                    await producer.send(Message("orders", b"x"))
                await asyncio.sleep(120)

        async def note(message: StoredMessage) -> None:
            got.append(int(message.queue_offset))
            await asyncio.sleep(1)

        consuming = asyncio.ensure_future(process.run(consume()))
        await asyncio.sleep(3)
        process.stop()  # with messages in hand, and a pull that is held
        pool = Pool()
        tool = Caller(pool, servers, timeout_ms=3_000)
        await positions.reset(tool, "g", "orders", queue=queue, offset=1)
        for commits, offset in ((False, 2), (True, 6)):
            await tool.ask(f"{cluster.brokers[0].address}:{BROKER_PORT}", commit(offset))
            assert (await observer.committed())[queue] == (6 if commits else 1)
            await positions.lag(tool, "g")
        network.break_connections("member")
        process.wake()
        await asyncio.sleep(0)
        got.clear()
        await consuming
        (committed,) = (await observer.committed()).values()
        await pool.close()
        await observer.close()
        await cluster.stop()
        return got, committed

    def commit(offset: int) -> UpdateOffset:
        return UpdateOffset(consumer_group="g", topic="orders", queue_id=0, commit_offset=offset)

    assert simulate(main) == ([6, 7], 8)


@pytest.mark.parametrize("way", ["frozen", "unanswered"])
def test_consumption_goes_on_soon_after_its_pulls_were_answered_no_more(way: str) -> None:
    """Whether one answer was lost, or nothing goes over a connection and nobody says so."""

    async def main(network: Network) -> float:
        cluster = Cluster(network)
        await cluster.start()
        observer = Observer(cluster, "orders", 1, group="g")
        await observer.create_topic()
        process, world = cluster.client("member")
        sender, sender_world = cluster.client("sender")
        servers = cluster.nameserver_addresses
        got: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        async def consume() -> None:
            consumer = PushConsumer("g", nameservers=servers, world=world, start="first")
            consumer.subscribe("orders", listener=note)
            async with consumer:
                await got

        async def note(message: StoredMessage) -> None:
            got.set_result(network.now())

        async def send() -> float:
            async with Producer("p", nameservers=servers, world=sender_world) as producer:
                await producer.send(Message("orders", b"x"))
            return network.now()

        consuming = asyncio.ensure_future(process.run(consume()))
        await asyncio.sleep(25)
        if way == "frozen":
            network.freeze("member")
            sent_at = await sender.run(send())
        else:
            sent_at = await sender.run(send())
            network.distort("broker-0", Fates(lost=1.0))
            await asyncio.sleep(0.5)
            network.heal()
        await consuming
        await observer.close()
        await cluster.stop()
        return got.result() - sent_at

    assert simulate(main) < {"frozen": 75, "unanswered": 32}[way]
