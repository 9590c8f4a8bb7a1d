"""Many messages in few requests."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import sprocket
from sprocket.base.errors import ClosedError, ReplyError, RouteNotFound, UsageError
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.client.sending.many import SomeNotSent
from sprocket.client.tracing import Tracer
from sprocket.message.batch import decode
from sprocket.message.message import Message
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.remoting.transport import Peer
from tests.client.fakes import FakeBroker, play, queue_of, world

BAD = b"refuse this"


def producer_of(broker: FakeBroker, **settings: int) -> Producer:
    config = ProducerConfig(**settings)  # type: ignore[arg-type]
    return Producer("senders", nameservers=broker.address, config=config, world=world())


def orders(count: int, topic: str = "orders") -> list[Message]:
    return [Message(topic, b"%d" % n, keys=[f"o-{n % 5}"]) for n in range(count)]


def test_they_go_in_batches_and_each_gets_its_result_in_the_order_of_the_list() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4, "bills": 1}) as broker, producer_of(broker) as producer:
            a, b = orders(600), orders(600, "bills")
            messages = [one for n in range(600) for one in (a[n], b[n])]
            sent = await producer.send_many(iter(messages))
            assert broker.count(SendBatch) == 6
            assert broker.count(SendMessageV2) == 0
            assert len({each.message_id for each in sent}) == 1200
            for message, each in zip(messages, sent, strict=True):
                assert each.queue.topic == message.topic
                assert broker.bodies(message.topic, each.queue.number)[each.queue_offset] == (
                    message.body
                )
            assert await producer.send_many([]) == []

    play(main)


def test_with_a_key_or_a_queue_the_order_of_each_queue_is_that_of_the_list() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 4}) as broker,
            producer_of(broker, batch_count_max=3) as producer,
        ):
            busy = iter(range(1000))
            broker.refuse = lambda command, peer: (
                2 if command.code == SendBatch.code and next(busy) % 2 else None
            )
            sent = await producer.send_many(orders(60), key_of=lambda one: one.keys[0])
            for n, each in enumerate(sent):
                alone = await producer.send(Message("orders", b"x"), key=f"o-{n % 5}")
                assert alone.queue == each.queue
            for number in range(4):
                bodies = [int(b) for b in broker.bodies("orders", number) if b != b"x"]
                assert bodies == sorted(bodies)
            sent = await producer.send_many(orders(20), queue=queue_of("orders", 2))
            offsets = [int(each.queue_offset) for each in sent]
            assert offsets == list(range(offsets[0], offsets[0] + 20))

    play(main)


def test_what_cannot_be_sent_is_told_and_costs_no_other() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, producer_of(broker) as producer:
            messages = orders(10)
            messages[3].tag = "a || b"
            messages[5] = Message("orders", b"")
            messages[6] = "no message"  # type: ignore[call-overload]
            messages[8] = Message("nowhere", b"x")
            with pytest.raises(SomeNotSent, match=r"4 of 10 messages.*number 3") as told:
                await producer.send_many(messages)
            errors = told.value.errors
            assert list(errors) == [3, 5, 6, 8]
            assert [type(each) for each in errors.values()] == [UsageError] * 3 + [RouteNotFound]
            assert list(told.value.sent) == [0, 1, 2, 4, 7, 9]
            stored = broker.bodies("orders", 0) + broker.bodies("orders", 1)
            assert sorted(stored) == [b"0", b"1", b"2", b"4", b"7", b"9"]

    play(main)


@pytest.mark.parametrize("code", [13, 3])
def test_a_batch_that_is_refused_for_one_message_costs_only_that_one(code: int) -> None:
    def refuse(command: Command, peer: Peer) -> int | None:
        bodies = [command.body]
        if command.code == SendBatch.code:
            bodies = [part.body for part in decode(command.body)]
        elif command.code != SendMessageV2.code:
            return None
        return code if BAD in map(bytes, bodies) else None

    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, producer_of(broker) as producer:
            broker.refuse = refuse
            messages = orders(6)
            messages[4].body = BAD
            with pytest.raises(SomeNotSent) as told:
                await producer.send_many(messages)
            assert list(told.value.errors) == [4]
            assert isinstance(told.value.errors[4], ReplyError)
            assert broker.bodies("orders") == [b"0", b"1", b"2", b"3", b"5"]
            assert [each.queue_offset for each in told.value.sent.values()] == list(range(5))

    play(main)


def test_a_refusal_of_all_is_told_for_each_without_trying_one_by_one() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, producer_of(broker) as producer:
            broker.refuse = lambda command, peer: 16 if command.code == SendBatch.code else None
            with pytest.raises(SomeNotSent) as told:
                await producer.send_many(orders(6))
            assert Counter(type(each).__name__ for each in told.value.errors.values()) == {
                "NoPermission": 6
            }
            assert (broker.count(SendBatch), broker.count(SendMessageV2)) == (1, 0)

    play(main)


def test_batches_can_be_switched_off() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            async with producer_of(broker, batch_count_max=1) as producer:
                await producer.send_many(orders(6))
            assert (broker.count(SendBatch), broker.count(SendMessageV2)) == (0, 6)

    play(main)


def test_no_more_than_some_requests_are_under_way_at_once() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            producer_of(broker, batch_count_max=2) as producer,
        ):
            await producer.queues("orders")
            held = asyncio.Event()
            store = broker._send

            async def slow(command: Command, peer: Peer) -> object:
                await held.wait()
                return store(command, peer)

            broker.more[SendBatch.code] = slow
            sending = asyncio.create_task(producer.send_many(orders(100)))
            await asyncio.sleep(1)
            assert broker.count(SendBatch) == 8
            held.set()
            assert len(await sending) == 100

    play(main)


def test_a_closed_producer_sends_nothing() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            producer = producer_of(broker)
            with pytest.raises(ClosedError):
                await producer.send_many(orders(1))

    play(main)


def test_a_traced_producer_traces_what_was_sent() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2, "RMQ_SYS_TRACE_TOPIC": 1}) as broker:
            async with (
                Tracer(nameservers=broker.address, world=world("tracer")) as tracer,
                tracer.producer("senders", nameservers=broker.address, world=world()) as producer,
            ):
                messages = orders(4)
                messages[1].body = b""
                with pytest.raises(SomeNotSent) as told:
                    await producer.send_many(messages)
            traces = b"".join(broker.bodies("RMQ_SYS_TRACE_TOPIC")).decode()
            assert all(each.message_id in traces for each in told.value.sent.values())

    play(main)


def test_the_error_is_at_hand() -> None:
    assert sprocket.SomeNotSent is SomeNotSent
