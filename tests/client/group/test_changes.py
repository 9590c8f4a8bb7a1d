"""Nothing is lost when something is changed while a consumer runs, of whatever kind it is."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import pytest

from sprocket.base.deadline import Deadline
from sprocket.client.config import ConsumerConfig, LitePullConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.requests.topic import CreateTopic, DeleteTopic
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster
from sprocket.testing.disk import MemoryDisk
from tests.client.fakes import until
from tests.client.group.test_membership import producer_in, with_cluster

#: Settings under which everything else takes its time, so that only the change itself counts.
SLOW: dict[str, Any] = {"hold_ms": 25_000, "rebalance_ms": 600_000, "route_refresh_ms": 600_000}
ORDERS = re.compile("ord.*s")
#: Makes all bodies different.
NUMBERS = itertools.count()


class Kind(Protocol):
    """A running consumer of some kind: how it subscribes, and what it got."""

    got: list[bytes]
    consumer: Any

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, *error: Any) -> None: ...


class Pushed:
    """A push consumer with a listener."""

    topic: Any = "orders"

    def __init__(self, cluster: Cluster, **kind: Any) -> None:
        self.got: list[bytes] = []
        _, world = cluster.client("c1", disk=MemoryDisk())
        self.consumer = PushConsumer(
            "readers",
            nameservers=cluster.nameserver_addresses,
            start="first",
            config=ConsumerConfig(offsets_folder="/home", **SLOW),
            world=world,
            **kind,
        )

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None:
        async def take(message: StoredMessage) -> None:
            self.got.append(message.body)

        self.consumer.subscribe(topic, listener=take, **choice)

    async def __aenter__(self) -> Any:
        await self.consumer.start()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.consumer.close()


class Matched(Pushed):
    """One that subscribes by a pattern."""

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None:
        super().subscribe(ORDERS, **choice)


class Iterating(Pushed):
    """One whose messages are iterated over."""

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None:
        self.consumer.subscribe(topic, **choice)

    async def __aenter__(self) -> Any:
        await super().__aenter__()
        self.task = asyncio.ensure_future(self.iterate())
        return self

    async def iterate(self) -> None:
        async for message in self.consumer:
            self.got.append(message.body)

    async def __aexit__(self, *error: Any) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await super().__aexit__(*error)


class Polling:
    """A lite pull consumer that subscribes."""

    def __init__(self, cluster: Cluster) -> None:
        self.got: list[bytes] = []
        _, world = cluster.client("c1")
        self.consumer: Any = LitePullConsumer(
            "readers",
            nameservers=cluster.nameserver_addresses,
            start="first",
            config=LitePullConfig(**SLOW),
            world=world,
        )

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None:
        self.consumer.subscribe(topic, **choice)

    async def __aenter__(self) -> Any:
        await self.consumer.start()
        self.task = asyncio.ensure_future(self.poll())
        return self

    async def poll(self) -> None:
        while True:
            self.got += [each.body for each in await self.consumer.poll()]

    async def __aexit__(self, *error: Any) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.consumer.close()


class Assigned(Polling):
    """One that reads queues of its choice."""

    def subscribe(self, topic: Any = "orders", **choice: Any) -> None:
        self.consumer.assign([QueueId(topic, "broker-0", n) for n in range(4)], **choice)


KINDS: dict[str, Callable[[Cluster], Kind]] = {
    "concurrent": Pushed,
    "ordered": lambda cluster: Pushed(cluster, ordered=True),
    "broadcasting": lambda cluster: Pushed(cluster, broadcasting=True),
    "iterating": Iterating,
    "pattern": Matched,
    "lite": Polling,
    "assigned": Assigned,
}
#: (the choice at first, the one afterwards, which also wants what is tagged B).
CHOICES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "tags": ({"tags": "A"}, {"tags": "A || B"}),
    "sql": ({"sql": "TAGS = 'A'"}, {"sql": "TAGS IN ('A', 'B')"}),
    "tags to sql": ({"tags": "A"}, {"sql": "TAGS IN ('A', 'B')"}),
    "sql to all": ({"sql": "TAGS = 'A'"}, {}),
}


async def send_all(producer: Producer, tags: str, *, topic: str = "orders") -> set[bytes]:
    """Sends one message of each tag to each of the topic's queues; returns the bodies."""
    sent = set()
    for tag in tags:
        for number in range(4):
            body = b"%s%d %d" % (tag.encode(), number, next(NUMBERS))
            queue = QueueId(topic, "broker-0", number)
            await producer.send(Message(topic, body, tag=tag), queue=queue)
            sent.add(body)
    return sent


async def has_all(kind: Kind, wanted: set[bytes], *, seconds: float = 5) -> None:
    await until(lambda: wanted <= set(kind.got), seconds)


async def operate(cluster: Cluster, header: Any) -> None:
    async with Pool() as pool:
        address = f"{cluster.brokers[0].address}:{BROKER_PORT}"
        (await pool.ask(address, header, deadline=Deadline.after_ms(3_000))).checked()


async def create(cluster: Cluster, topic: str, queues: int = 4) -> None:
    header = CreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    await operate(cluster, header)
    await asyncio.sleep(1)


def with_kind(
    name: str, test: Callable[[Cluster, Producer, Kind], Coroutine[Any, Any, None]]
) -> None:
    """Runs a test with a topic of four queues and a consumer that is not started yet."""

    async def main(cluster: Cluster) -> None:
        await create(cluster, "orders")
        async with producer_in(cluster) as producer:
            await test(cluster, producer, KINDS[name](cluster))

    with_cluster(main)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_running_consumer_gets_at_once_what_only_its_new_choice_wants(
    kind: str, choice: str
) -> None:
    first, then = CHOICES[choice]

    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe(**first)
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            kind.subscribe(**then)
            await has_all(kind, await send_all(producer, "BA"))
            kind.subscribe(**first)
            others = await send_all(producer, "B")
            await has_all(kind, await send_all(producer, "A"))
            assert not others & set(kind.got)
            kind.subscribe(**then)
            await has_all(kind, await send_all(producer, "B"))

    with_kind(kind, test)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"assigned"}))
def test_what_is_subscribed_again_with_another_choice_is_wanted_from_then_on(kind: str) -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe(tags="A")
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            for pause in (0.0, 1.0, 0.001):
                kind.consumer.unsubscribe(ORDERS if isinstance(kind, Matched) else "orders")
                await asyncio.sleep(pause)
                kind.subscribe(tags="A || B")
                await has_all(kind, await send_all(producer, "AB"))
                kind.subscribe(tags="A")

    with_kind(kind, test)


def test_many_changes_in_one_turn_of_the_loop_end_with_the_last() -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe(tags="A")
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            for _ in range(20):
                for tags in ("C", "B", "A", "*", "B || A"):
                    kind.subscribe(tags=tags)
                await asyncio.sleep(0)
            await has_all(kind, await send_all(producer, "BA"))
            unwanted = await send_all(producer, "C")
            await has_all(kind, await send_all(producer, "A"))
            assert not unwanted & set(kind.got)

    with_kind("concurrent", test)


def test_a_choice_that_changes_while_a_queues_position_is_asked_for_counts() -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        sent = await send_all(producer, "B")
        kind.subscribe(tags="A")
        async with kind:
            for _ in range(200):
                if kind.consumer.queues:
                    break
                kind.subscribe(tags="A")
                await asyncio.sleep(0.0005)
            kind.subscribe(tags="A || B")
            await has_all(kind, sent | await send_all(producer, "AB"))

    with_kind("concurrent", test)


@pytest.mark.parametrize("kind", KINDS)
def test_a_listeners_batch_or_place_may_change_while_it_runs(kind: str) -> None:
    """What a consumer calls is read for each message; pauses are read for each pull."""

    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe()
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            queues = [QueueId("orders", "broker-0", n) for n in range(4)]
            is_lite = isinstance(kind, Polling)
            kind.consumer.pause(queues if is_lite else "orders")
            waiting = await send_all(producer, "B")
            await asyncio.sleep(30)
            assert not waiting & set(kind.got)
            if isinstance(kind, Pushed) and not isinstance(kind, Iterating):
                batches: list[bytes] = []

                def take(messages: list[StoredMessage]) -> None:
                    batches.extend(each.body for each in messages)

                topic = ORDERS if isinstance(kind, Matched) else "orders"
                kind.consumer.subscribe(topic, listener=take, batch=8)
                kind.got = batches
            kind.consumer.resume(queues if is_lite else "orders")
            await has_all(kind, waiting)

    with_kind(kind, test)


def test_functions_of_a_lite_pull_consumer_may_change_while_it_runs() -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        shares: list[tuple[str, int]] = []
        kind.subscribe()
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            kind.consumer.on_assignment(lambda topic, queues: shares.append((topic, len(queues))))
            kind.consumer.unsubscribe("orders")
            await until(lambda: ("orders", 0) in shares)

    with_kind("lite", test)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [1, 3, 9])
def test_a_topic_that_is_made_again_is_read_from_its_first_message(before: int, kind: str) -> None:
    """Whether the new topic ends before the old position, at it, or behind it."""

    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe()
        async with kind:
            for _ in range(before):
                await has_all(kind, await send_all(producer, "A"))
                await asyncio.sleep(1)
            await operate(cluster, DeleteTopic(topic="orders"))
            await create(cluster, "orders")
            sent: set[bytes] = set()
            for _ in range(3):
                sent |= await send_all(producer, "B")
                await asyncio.sleep(1)
            await has_all(kind, sent, seconds=90)
            await asyncio.sleep(10)
            await has_all(kind, await send_all(producer, "C"))
            assert len(kind.got) == len(set(kind.got))

    with_kind(kind, test)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_is_made_again_long_afterwards_is_read_from_its_first_message(
    kind: str,
) -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe()
        async with kind:
            for _ in range(5):
                await has_all(kind, await send_all(producer, "A"))
                await asyncio.sleep(1)
            await operate(cluster, DeleteTopic(topic="orders"))
            await asyncio.sleep(200)
            await create(cluster, "orders")
            await has_all(kind, await send_all(producer, "BCDEFGHI"), seconds=90)

    with_kind(kind, test)


@pytest.mark.parametrize("kind", ["concurrent", "ordered", "iterating"])
def test_queues_that_are_added_are_read_from_their_first_message(kind: str) -> None:
    async def test(cluster: Cluster, producer: Producer, kind: Kind) -> None:
        kind.subscribe()
        async with kind:
            await has_all(kind, await send_all(producer, "A"))
            await create(cluster, "orders", queues=8)
            sent = set()
            for number in range(4, 8):
                body = b"more %d" % number
                queue = QueueId("orders", "broker-0", number)
                await producer.send(Message("orders", body), queue=queue)
                sent.add(body)
            await has_all(kind, sent, seconds=900)

    with_kind(kind, test)
