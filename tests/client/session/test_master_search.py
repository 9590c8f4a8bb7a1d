"""Clients go on when a broker gets another master, in every way in which one is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from sprocket.base.errors import SprocketError
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.session.master_search import MasterSearch
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.record import decode
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.offset import UpdateOffset
from sprocket.protocol.requests.route import RouteOfTopic
from tests.client.fake_group import TOPIC, FakeGroup, client, play
from tests.client.fakes import queue_of, until

#: A way to lose the master, and the longest that sends may then stand still, s: until the name
#: server knows the new one, and half a second more, the longest pause of a search.
WAYS = {"hand_over": 0.8, "stop": 0.8, "kill": 1.0, "freeze": 3.1}

Send = Callable[[Producer, bytes], Awaitable[object]]


async def in_turn(producer: Producer, body: bytes) -> object:
    return await producer.send(Message(TOPIC, body), timeout_ms=6_000)


async def by_key(producer: Producer, body: bytes) -> object:
    return await producer.send(Message(TOPIC, body), key="k", timeout_ms=6_000)


async def to_queue(producer: Producer, body: bytes) -> object:
    return await producer.send(Message(TOPIC, body), queue=queue_of(TOPIC), timeout_ms=6_000)


async def as_batch(producer: Producer, body: bytes) -> object:
    return await producer.send_batch([Message(TOPIC, body)], timeout_ms=6_000)


async def in_transaction(producer: Producer, body: bytes) -> object:
    assert isinstance(producer, TransactionalProducer)
    async with producer.transaction(Message(TOPIC, body), timeout_ms=6_000):
        pass
    return None


@dataclass
class Sending:
    """Sends a message every 20 ms, and records what fails and how long none succeeded."""

    failed: list[SprocketError] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    gap: float = 0.0

    async def run(self, producer: Producer, send: Send, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        last = began = loop.time()
        tasks: set[asyncio.Task[None]] = set()

        async def one(number: int) -> None:
            nonlocal last
            body = b"%d" % number
            try:
                await send(producer, body)
            except SprocketError as error:
                self.failed.append(error)
            else:
                self.sent.append(body)
                self.gap, last = max(self.gap, loop.time() - last), loop.time()

        number = 0
        while loop.time() < began + seconds:
            number += 1
            tasks.add(asyncio.ensure_future(one(number)))
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks)


def lose_master(way: str, send: Send, seed: int) -> tuple[Sending, FakeGroup]:
    sending = Sending()
    groups: list[FakeGroup] = []

    async def test(group: FakeGroup) -> None:
        groups.append(group)
        process, world = client(group, "sender")

        async def send_all() -> None:
            async with TransactionalProducer(
                "senders", nameservers=group.address, world=world
            ) as producer:
                await sending.run(producer, send, 8.0)

        working = process.start(send_all())
        await asyncio.sleep(2.0)
        await getattr(group, way)()
        await working

    play(test, seed=seed)
    return sending, groups[0]


def stored(group: FakeGroup) -> Counter[bytes]:
    return Counter(decode(each).body for each in group.a.queue(TOPIC).records)


@pytest.mark.parametrize("send", [in_turn, by_key, to_queue, as_batch, in_transaction])
@pytest.mark.parametrize("way", WAYS)
def test_no_send_fails_and_none_is_late_when_a_broker_has_another_master(
    way: str, send: Send
) -> None:
    for seed in range(1, 4):
        sending, group = lose_master(way, send, seed)
        assert not sending.failed, (seed, sending.failed[0])
        assert sending.gap < WAYS[way], seed
        counts = stored(group)
        assert set(sending.sent) == set(counts)
        if way in ("hand_over", "stop"):
            assert set(counts.values()) == {1}, "nothing is sent twice"
        elif way == "kill":
            assert sum(counts.values()) - len(counts) <= 1, "only what was under way is"


def test_a_search_asks_name_servers_a_few_times_a_second_for_all_who_wait() -> None:
    _, group = lose_master("freeze", in_turn, 1)
    assert group.count(RouteOfTopic) < 25


def test_without_a_search_the_client_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MasterSearch, "suspect", lambda *_: None)
    for way in WAYS:
        sending, _ = lose_master(way, by_key, 1)
        assert sending.failed, way


def test_a_route_without_a_master_is_waited_on_but_not_for_ever() -> None:
    async def test(group: FakeGroup) -> None:
        group.name_master(None, slave=group.b)
        process, world = client(group, "sender")

        async def send(timeout_ms: float) -> str:
            async with Producer("p", nameservers=group.address, world=world) as producer:
                try:
                    return (
                        await producer.send(Message(TOPIC, b"x"), timeout_ms=timeout_ms)
                    ).offset_id
                except SprocketError as error:
                    return str(error)

        assert "no broker takes messages" in await process.run(send(1_000))
        waiting = process.start(send(3_000))
        await asyncio.sleep(1.0)
        group.name_master(group.a, slave=group.b)
        began = asyncio.get_running_loop().time()
        assert len(await waiting) == 32
        assert asyncio.get_running_loop().time() - began < 0.6

    play(test)


def test_a_message_without_reply_is_written_once_there_is_somebody_to_write_to() -> None:
    async def test(group: FakeGroup) -> None:
        process, world = client(group, "sender")
        producer = Producer("p", nameservers=group.address, world=world)

        async def send(count: int) -> None:
            for _ in range(count):
                await producer.send_oneway(Message(TOPIC, b"x"), timeout_ms=3_000)
                await asyncio.sleep(0.05)

        await process.run(producer.start())
        await process.run(send(3))
        losing = asyncio.ensure_future(group.kill())
        await asyncio.sleep(0.2)
        await process.run(send(20))
        await losing
        await asyncio.sleep(0.1)
        assert len(group.a.queue(TOPIC).records) == 23
        await process.run(producer.close())

    play(test)


def test_the_end_of_a_transaction_is_carried_out_by_the_new_master_and_never_by_a_slave() -> None:
    async def test(group: FakeGroup) -> None:
        process, world = client(group, "sender")

        async def commit() -> bool:
            async with TransactionalProducer(
                "p", nameservers=group.address, world=world
            ) as producer:
                async with producer.transaction(Message(TOPIC, b"x")) as transaction:
                    await group.hand_over()
                return transaction.is_confirmed

        assert await process.run(commit())
        assert (len(group.a.ended), len(group.b.ended)) == (0, 1)

    play(test)


class Consuming:
    """A push consumer whose messages are put into the queue every 50 ms."""

    def __init__(self, group: FakeGroup, *, ordered: bool) -> None:
        self.group = group
        self.process, world = client(group, "consumer")
        config = ConsumerConfig(commit_ms=500)
        self.consumer = PushConsumer(
            "g", nameservers=group.address, world=world, ordered=ordered, start="first",
            config=config,
        )  # fmt: skip
        self.seen: list[bytes] = []
        self.times: list[float] = []

        async def listen(message: StoredMessage) -> None:
            await asyncio.sleep(0.01)
            self.seen.append(message.body)
            self.times.append(asyncio.get_running_loop().time())

        self.consumer.subscribe(TOPIC, listener=listen)

    @property
    def gap(self) -> float:
        return max(
            later - sooner for sooner, later in zip(self.times, self.times[1:], strict=False)
        )

    async def run(self, way: str) -> None:
        await self.process.run(self.consumer.start())
        losing = asyncio.ensure_future(asyncio.sleep(0))
        for number in range(240):
            self.group.a.put(TOPIC, body=str(number))
            if number == 40:
                losing = asyncio.ensure_future(getattr(self.group, way)())
            await asyncio.sleep(0.05)
        await losing
        await until(lambda: len(self.seen) >= 240)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_consumption_goes_on_in_order_and_is_committed_at_the_new_master(
    way: str, ordered: bool
) -> None:
    async def test(group: FakeGroup) -> None:
        consuming = Consuming(group, ordered=ordered)
        await consuming.run(way)
        assert set(consuming.seen) == {b"%d" % number for number in range(240)}
        assert consuming.gap < WAYS[way] + 1.0
        if ordered:
            assert consuming.seen == [b"%d" % number for number in range(240)]
            assert group.b.leases, "the queue is leased from the new master"
        assert group.b.count(Heartbeat) > 0
        group.committed.clear()
        await until(lambda: group.b.committed.get(("g", TOPIC, 0)) == 240, 2.0)
        await consuming.process.run(consuming.consumer.close())

    play(test)


@pytest.mark.parametrize("way", WAYS)
def test_a_pull_consumer_reads_and_commits_at_the_new_master(way: str) -> None:
    async def test(group: FakeGroup) -> None:
        group.a.put(TOPIC)
        process, world = client(group, "reader")
        consumer = PullConsumer("g", nameservers=group.address, world=world)
        queue = queue_of(TOPIC)

        async def read() -> int:
            pulled = await consumer.pull(queue, 0)
            await consumer.commit(queue, pulled.next_offset)
            return len(pulled.messages)

        await process.run(consumer.start())
        assert await process.run(read()) == 1
        losing = asyncio.ensure_future(getattr(group, way)())
        await asyncio.sleep(0.05)
        assert await process.run(read()) == 1
        await losing
        assert group.b.count(UpdateOffset) == 1
        await process.run(consumer.close())

    play(test)


def test_positions_at_a_slave_are_used_while_there_is_no_master_but_not_their_absence() -> None:
    async def test(group: FakeGroup) -> None:
        group.a.put(TOPIC)
        process, world = client(group, "reader")
        consumer = PullConsumer("g", nameservers=group.address, world=world)
        queue = queue_of(TOPIC)
        group.b.refusal = None  # it may be read
        await process.run(consumer.start())
        await process.run(consumer.queues(TOPIC))
        group.name_master(None, slave=group.b)
        await process.run(consumer.queues(TOPIC))
        with pytest.raises(SprocketError, match="not known while"):
            await process.run(consumer.committed(queue))
        await process.run(consumer.commit(queue, 1))
        assert await process.run(consumer.committed(queue)) == 1
        assert group.b.count(UpdateOffset) == 1
        await process.run(consumer.close())

    play(test)
