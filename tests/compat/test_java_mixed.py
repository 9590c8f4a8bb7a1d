"""Groups with members of both kinds, old and new Java clients and ours, at our broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sprocket import (
    Later,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    QueueId,
    RouteNotFound,
    StoredMessage,
)
from sprocket.client.config import ConsumerConfig
from tests.compat.javaland import (
    CLIENT_VERSIONS,
    QUICK_REBALANCE,
    JavaDriver,
    Json,
    mqadmin,
    until,
)
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = pytest.mark.java

QUICK_LEASES = {**QUICK_REBALANCE, "rocketmq.client.rebalance.lockInterval": "1000"}
LEASE_MS = 3_000
QUEUES = 4


@pytest.fixture(scope="module")
def quick_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """A node whose leases run out soon."""
    settings = {"broker.lock_lease_ms": LEASE_MS}
    with SprocketNode(tmp_path_factory.mktemp("mixed"), settings=settings) as running:
        yield running


@pytest.fixture(params=CLIENT_VERSIONS)
def java(
    request: pytest.FixtureRequest, quick_node: SprocketNode, tmp_path: Path
) -> Iterator[JavaDriver]:
    with JavaDriver(request.param, work=tmp_path, properties=QUICK_LEASES) as running:
        yield running


@pytest.fixture(scope="module", params=CLIENT_VERSIONS)
def lasting(
    request: pytest.FixtureRequest,
    quick_node: SprocketNode,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[JavaDriver]:
    work = tmp_path_factory.mktemp("lasting")
    with JavaDriver(request.param, work=work, properties=QUICK_LEASES) as running:
        yield running


@pytest.fixture
def steady(lasting: JavaDriver) -> Iterator[JavaDriver]:
    """A Java process for tests that let it live."""
    lasting.clear_events()
    yield lasting
    lasting.call("stopAll")


@pytest.fixture
def topic(request: pytest.FixtureRequest, quick_node: SprocketNode) -> str:
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)
    made = mqadmin(
        *("updateTopic", "-c", "DefaultCluster", "-t", name, "-r", str(QUEUES), "-w", str(QUEUES)),
        namesrv=quick_node.names,
    )
    assert "success" in made
    return name


class Ours:
    """One of our members: what it got, as the Java driver tells of its own."""

    def __init__(self, node: SprocketNode, topic: str, name: str, **more: Any) -> None:
        self.heard: list[Json] = []
        self.fails = False
        self.consumer = PushConsumer(
            f"G_{topic}",
            nameservers=node.names,
            start="first",
            config=ConsumerConfig(
                instance=name, rebalance_ms=1_000, lease_renewal_ms=1_000, reconsume_max=2
            ),
            **more,
        )
        self.consumer.subscribe(topic, listener=self._take)

    async def _take(self, message: StoredMessage) -> Later | None:
        self.heard.append(
            {
                "body": message.body,
                "queueId": message.queue.number,
                "queueOffset": message.queue_offset,
                "topic": message.topic,
                "msgId": message.properties["UNIQ_KEY"],
                "reconsumeTimes": message.reconsume_times,
            }
        )
        await asyncio.sleep(0.002)
        return Later(1) if self.fails else None

    def queues(self, topic: str) -> set[int]:
        return {queue.number for queue in self.consumer.queues if queue.topic == topic}


async def join(java: JavaDriver, node: SprocketNode, topic: str, **more: Any) -> None:
    await java.ask("consumer.start", group=f"G_{topic}", namesrv=node.names, topic=topic, **more)


async def queues_of(java: JavaDriver, topic: str) -> set[int]:
    held = (await java.ask("consumer.queues"))["queues"]
    return {queue["queueId"] for queue in held if queue["topic"] == topic}


def settled(java: JavaDriver, topic: str, *ours: Ours) -> Callable[[], Awaitable[bool]]:
    """Whether all have queues, and no two the same."""

    async def ask() -> bool:
        shares = [await queues_of(java, topic), *(each.queues(topic) for each in ours)]
        return all(shares) and sorted(n for share in shares for n in share) == list(range(QUEUES))

    return ask


@contextlib.asynccontextmanager
async def sending(node: SprocketNode, topic: str) -> AsyncIterator[list[bytes]]:
    """Sends a message every few milliseconds, each queue in turn; gives what was stored."""
    sent: list[bytes] = []

    async def keep_on() -> None:
        async with Producer("senders", nameservers=node.names) as producer:
            for number in range(1_000_000):
                body = b"%06d" % number
                queue = QueueId(topic, "broker-a", number % QUEUES)
                await producer.send(Message(topic, body), queue=queue)
                sent.append(body)
                await asyncio.sleep(0.005)

    task = asyncio.ensure_future(keep_on())
    try:
        yield sent
    finally:
        task.cancel()
        await asyncio.wait([task])


def test_members_come_go_and_are_killed_and_nothing_is_lost(
    java: JavaDriver, quick_node: SprocketNode, topic: str
) -> None:
    async def story() -> None:
        one, two = (Ours(quick_node, topic, name) for name in ("one", "two"))
        async with one.consumer, sending(quick_node, topic) as sent:
            await join(java, quick_node, topic)
            await until(settled(java, topic, one))
            assert len(one.queues(topic)) == 2
            async with two.consumer:
                await until(settled(java, topic, one, two))
            await until(settled(java, topic, one))
            await java.ask("consumer.stop")
            await until(lambda: len(one.queues(topic)) == QUEUES)
            await join(java, quick_node, topic)
            await until(settled(java, topic, one))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(java.kill)
            await until(lambda: len(one.queues(topic)) == QUEUES)
            count = len(sent)

            def heard() -> Counter[bytes]:
                told = java.events("message")
                return Counter(each["body"] for each in [*told, *one.heard, *two.heard])

            await until(lambda: set(sent[:count]) <= set(heard()))
        assert sum(heard().values()) < len(sent) * 1.5, "most came once"

    run(story())


def test_ordered_members_hand_queues_over_in_order(
    java: JavaDriver, quick_node: SprocketNode, topic: str
) -> None:
    async def story() -> None:
        one = Ours(quick_node, topic, "one", ordered=True)
        async with one.consumer, sending(quick_node, topic) as sent:
            await until(lambda: len(one.queues(topic)) == QUEUES)
            await join(java, quick_node, topic, orderly=True)
            await until(settled(java, topic, one))
            await asyncio.sleep(0.5)
            await java.ask("consumer.stop")
            await until(lambda: len(one.queues(topic)) == QUEUES)
            await asyncio.sleep(0.5)
            check_order(one.heard, java.events("message"))
            await join(java, quick_node, topic, orderly=True)
            await until(settled(java, topic, one))
            await asyncio.sleep(0.5)
            before = await committed(quick_node, topic)
            await asyncio.to_thread(java.kill)
            await until(lambda: len(one.queues(topic)) == QUEUES)
            count = len(sent)
            await until(lambda: set(sent[:count]) <= bodies(one.heard, java.events("message")))
        check_order(one.heard, java.events("message"), again_from=before)

    run(story())


def bodies(*heard: list[Json]) -> set[bytes]:
    return {each["body"] for part in heard for each in part}


async def committed(node: SprocketNode, topic: str) -> list[int]:
    """How far the group is in each queue, as the broker knows it."""
    async with PullConsumer(f"G_{topic}", nameservers=node.names) as asks:
        queues = (QueueId(topic, "broker-a", number) for number in range(QUEUES))
        return [await asks.committed(queue) or 0 for queue in queues]


def check_order(*heard: list[Json], again_from: Sequence[int] = (1 << 62,) * QUEUES) -> None:
    """Each member had each queue in order; where one went on, the other had not been before.

    Twice came at most what Java's member took when it had told how far it was and was stopping,
    and, from some offset on, what one had that was killed.
    """
    for number in range(QUEUES):
        turns = [
            [each["queueOffset"] for each in part if each["queueId"] == number] for part in heard
        ]
        for offsets in turns:
            assert offsets == sorted(offsets), number
        everything = {offset for offsets in turns for offset in offsets}
        assert everything == set(range(len(everything))), "no gap"
        twice = set.intersection(*map(set, turns))
        assert len([offset for offset in twice if offset < again_from[number]]) <= 40


def test_what_fails_everywhere_becomes_a_dead_letter_once(
    steady: JavaDriver, quick_node: SprocketNode, topic: str
) -> None:
    async def story() -> None:
        one = Ours(quick_node, topic, "one")
        one.fails = True
        async with one.consumer, Producer("senders", nameservers=quick_node.names) as producer:
            await join(steady, quick_node, topic, failTimes=-1, delayLevel=1, maxReconsume=2)
            await until(settled(steady, topic, one))
            sent = {}
            for number in range(12):
                queue = QueueId(topic, "broker-a", number % QUEUES)
                message = Message(topic, b"%d" % number, properties={"n": str(number)})
                sent[message.body] = (await producer.send(message, queue=queue)).message_id

            def heard() -> list[Json]:
                return [*one.heard, *steady.events("message")]

            await until(lambda: len(heard()) >= 36)

            async def have_died() -> bool:
                return len(await all_of(quick_node, f"%DLQ%G_{topic}")) >= 12

            await until(have_died)
            tries = sorted((each["body"], each["reconsumeTimes"]) for each in heard())
            assert tries == sorted((body, times) for body in sent for times in range(3))
            assert {(each["body"], each["msgId"]) for each in heard()} == set(sent.items())
            assert {each["topic"] for each in heard()} == {topic}
            assert len(steady.events("message")) >= 6
            assert len(one.heard) >= 6
            dead = await all_of(quick_node, f"%DLQ%G_{topic}")
            assert sorted(each.body for each in dead) == sorted(sent)
            assert {each.properties["n"] for each in dead} == {str(n) for n in range(12)}

    run(story())


async def all_of(node: SprocketNode, topic: str) -> list[StoredMessage]:
    async with PullConsumer("undertaker", nameservers=node.names) as reader:
        found: list[StoredMessage] = []
        try:
            queues = await reader.queues(topic)
        except RouteNotFound:
            queues = []
        for queue in queues:
            found += (await reader.pull(queue, 0)).messages
        return found


def test_broadcasting_members_all_get_everything(
    steady: JavaDriver, quick_node: SprocketNode, topic: str, tmp_path: Path
) -> None:
    async def story() -> None:
        got: list[bytes] = []

        async def take(message: StoredMessage) -> None:
            got.append(message.body)

        config = ConsumerConfig(instance="ours", offsets_folder=str(tmp_path / "ours"))
        ours = PushConsumer(
            f"G_{topic}",
            nameservers=quick_node.names,
            start="first",
            broadcasting=True,
            config=config,
        )
        ours.subscribe(topic, listener=take)
        async with ours, Producer("senders", nameservers=quick_node.names) as producer:
            await join(steady, quick_node, topic, broadcast=True)
            for number in range(20):
                await producer.send(Message(topic, b"%d" % number))
            expected = sorted(b"%d" % number for number in range(20))
            await until(lambda: len(got) >= 20 and len(steady.events("message")) >= 20)
            assert sorted(got) == expected
            assert sorted(each["body"] for each in steady.events("message")) == expected

    run(story())


def test_mqadmin_moves_a_group_while_both_consume(
    steady: JavaDriver, quick_node: SprocketNode, topic: str
) -> None:
    async def story() -> None:
        one = Ours(quick_node, topic, "one")
        async with one.consumer, Producer("senders", nameservers=quick_node.names) as producer:
            await join(steady, quick_node, topic)
            await until(settled(steady, topic, one))
            for number in range(40):
                queue = QueueId(topic, "broker-a", number % QUEUES)
                await producer.send(Message(topic, b"%d" % number), queue=queue)

            def heard() -> Counter[bytes]:
                return Counter(each["body"] for each in [*one.heard, *steady.events("message")])

            await until(lambda: len(heard()) == 40)
            moved = await asyncio.to_thread(
                mqadmin,
                *("resetOffsetByTime", "-g", f"G_{topic}", "-t", topic, "-s", "0"),
                namesrv=quick_node.names,
            )
            assert "broker-a" in moved
            await until(lambda: all(times == 2 for times in heard().values()))
            await asyncio.sleep(1)
            assert set(heard().values()) == {2}
            assert len(one.heard) == 40

    run(story())
