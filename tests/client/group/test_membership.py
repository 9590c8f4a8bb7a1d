"""Members of a group against real brokers, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.client.fakes import until

T = TypeVar("T")


def with_cluster(main: Callable[[Cluster], Coroutine[Any, Any, T]], *, brokers: int = 1) -> T:
    async def whole(network: Network) -> T:
        cluster = Cluster(network, brokers=brokers)
        await cluster.start()
        try:
            return await main(cluster)
        finally:
            await cluster.stop()

    return simulate(whole)


def producer_in(cluster: Cluster) -> Producer:
    _, world = cluster.client("producer")
    return Producer("senders", nameservers=cluster.nameserver_addresses, world=world)


def consumer_in(cluster: Cluster, name: str = "c1", **settings: Any) -> PushConsumer:
    _, world = cluster.client(name)
    return PushConsumer(
        "readers",
        nameservers=cluster.nameserver_addresses,
        start="first",
        config=ConsumerConfig(**settings),
        world=world,
    )


def reader_in(cluster: Cluster) -> PullConsumer:
    _, world = cluster.client("reader")
    return PullConsumer("readers", nameservers=cluster.nameserver_addresses, world=world)


def test_every_message_comes_once_to_a_group_of_two_that_share_the_queues() -> None:
    async def main(cluster: Cluster) -> None:
        got: dict[str, list[bytes]] = {"c1": [], "c2": []}

        def listener(name: str) -> Any:
            async def take(message: StoredMessage) -> None:
                got[name].append(message.body)

            return take

        members = [consumer_in(cluster, name) for name in got]
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"0"))  # may come twice while they share out
            for name, member in zip(got, members, strict=True):
                member.subscribe("orders", listener=listener(name))
                await member.start()
            await until(lambda: all(len(_queues(member)) == 2 for member in members))
            for number in range(1, 200):
                await producer.send(Message("orders", b"%d" % number))
            await until(lambda: len(got["c1"]) + len(got["c2"]) >= 200)
            await asyncio.sleep(1)
            for member in members:
                await member.close()
        everything = sorted(int(body) for body in got["c1"] + got["c2"] if body != b"0")
        assert everything == list(range(1, 200))
        assert got["c1"]
        assert got["c2"]

    with_cluster(main)


def test_a_failing_message_comes_again_after_ten_seconds_then_becomes_a_dead_letter() -> None:
    async def main(cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        seen: list[tuple[int, float, str]] = []

        async def fail(message: StoredMessage) -> Later:
            seen.append((message.reconsume_times, loop.time(), message.topic))
            return Later()

        async with (
            producer_in(cluster) as producer,
            consumer_in(cluster, reconsume_max=2) as consumer,
        ):
            consumer.subscribe("orders", listener=fail)
            await producer.send(Message("orders", b"bad", properties={"color": "red"}))
            await until(lambda: len(seen) == 3)
            times = [time for _, time, _ in seen]
            assert [tries for tries, _, _ in seen] == [0, 1, 2]
            assert {topic for _, _, topic in seen} == {"orders"}
            assert 10 <= times[1] - times[0] < 13
            assert 30 <= times[2] - times[1] < 33
            await asyncio.sleep(5)
            async with reader_in(cluster) as reader:
                queue = QueueId("%DLQ%readers", "broker-0", 0)
                pulled = await reader.pull(queue, 0)
                (dead,) = pulled.messages
                assert dead.body == b"bad"
                assert dead.properties["color"] == "red"
                for own in (
                    QueueId("orders", "broker-0", 0),
                    QueueId("%RETRY%readers", "broker-0", 0),
                ):
                    end = await reader.max_offset(own)
                    assert (await reader.committed(own) or 0) == end

    with_cluster(main)


def test_a_strategy_of_the_users_own_decides_and_may_fail_for_a_while() -> None:
    async def main(cluster: Cluster) -> None:
        is_broken = False

        def odd_ones_only(
            member: str, queues: Sequence[QueueId], members: Sequence[str]
        ) -> list[QueueId]:
            if is_broken:
                raise RuntimeError("a strategy of the user's")
            return [queue for queue in queues if queue.number % 2 or "%" in queue.topic]

        async def take(message: StoredMessage) -> None:
            pass

        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"0"))
            async with consumer_in(cluster, assign=odd_ones_only, rebalance_ms=5_000) as consumer:
                consumer.subscribe("orders", listener=take)
                await until(lambda: [queue.number for queue in _queues(consumer)] == [1, 3])
                is_broken = True
                await asyncio.sleep(60)
                assert [queue.number for queue in _queues(consumer)] == [1, 3]
                is_broken = False
                consumer.subscribe("others", listener=take)
                await producer.send(Message("others", b"0"))
                await until(lambda: sum(q.topic == "others" for q in consumer.queues) == 2)

    with_cluster(main)


def test_a_member_that_dies_is_replaced_within_moments() -> None:
    async def main(cluster: Cluster) -> None:
        victim, victim_world = cluster.client("victim")
        got: list[bytes] = []

        async def take(message: StoredMessage) -> None:
            got.append(message.body)

        doomed = PushConsumer(
            "readers", nameservers=cluster.nameserver_addresses, world=victim_world
        )
        doomed.subscribe("orders", listener=take)
        survivor = consumer_in(cluster, "c1")
        survivor.subscribe("orders", listener=take)
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"0"))
            async with survivor:
                victim.start(doomed.start())
                await until(lambda: len(_queues(survivor)) == 2)
                cluster.network.kill(victim)
                victim.kill()
                await until(lambda: len(_queues(survivor)) == 4, seconds=5)

    with_cluster(main)


def test_after_a_broker_restart_consumption_goes_on_where_it_was() -> None:
    async def main(cluster: Cluster) -> None:
        got: list[bytes] = []

        async def take(message: StoredMessage) -> None:
            got.append(message.body)

        consumer = consumer_in(cluster)
        consumer.subscribe("orders", listener=take)
        async with producer_in(cluster) as producer, consumer:
            for number in range(20):
                await producer.send(Message("orders", b"%d" % number))
            await until(lambda: len(got) == 20)
            await cluster.brokers[0].stop()
            await asyncio.sleep(3)
            await cluster.brokers[0].start()
            for number in range(20, 40):
                await producer.send(Message("orders", b"%d" % number), timeout_ms=30_000)
            await until(lambda: len(got) == 40)
        assert sorted(int(body) for body in got) == list(range(40))

    with_cluster(main)


def test_queues_of_several_brokers_are_read() -> None:
    async def main(cluster: Cluster) -> None:
        got: list[StoredMessage] = []

        async def take(message: StoredMessage) -> None:
            got.append(message)

        consumer = consumer_in(cluster)
        consumer.subscribe("orders", listener=take)
        async with producer_in(cluster) as producer, consumer:
            for number in range(32):
                await producer.send(Message("orders", b"%d" % number))
            await until(lambda: len(got) == 32)
        assert {message.queue.broker for message in got} == {"broker-0", "broker-1"}

    with_cluster(main, brokers=2)


def test_ordered_members_that_come_and_go_keep_each_queue_in_order() -> None:
    async def main(cluster: Cluster) -> None:
        got: list[tuple[int, int]] = []

        async def take(message: StoredMessage) -> None:
            await asyncio.sleep(0.05)
            got.append((message.queue.number, message.queue_offset))

        def member(name: str) -> PushConsumer:
            _, world = cluster.client(name)
            made = PushConsumer(
                "readers",
                nameservers=cluster.nameserver_addresses,
                start="first",
                ordered=True,
                world=world,
            )
            made.subscribe("orders", listener=take)
            return made

        async with producer_in(cluster) as producer, member("c1"):
            for number in range(150):
                await producer.send(Message("orders", b"%d" % number), key=number)
                if number == 50:
                    second = member("c2")
                    await second.start()
                if number == 100:
                    await second.close()
                await asyncio.sleep(0.1)
            await until(lambda: len(set(got)) == 150)
        for number in range(4):
            mine = [offset for queue, offset in got if queue == number]
            assert mine == sorted(mine), "never back"
            assert mine == list(range(len(mine))), "and once"

    with_cluster(main)


def _queues(consumer: PushConsumer) -> list[QueueId]:
    return [queue for queue in consumer.queues if queue.topic == "orders"]
