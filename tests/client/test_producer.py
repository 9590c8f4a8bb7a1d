from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import (
    ClosedError,
    ConfigError,
    NoPermission,
    RouteNotFound,
    SendFailed,
    UsageError,
)
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer, SendStatus
from sprocket.message.message import Message
from sprocket.message.properties import decode
from sprocket.message.queue import QueueId
from sprocket.message.record import decode as decode_record
from sprocket.protocol.requests.client import Unregister
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendMessageV2
from tests.client.fakes import FakeBroker, play, queue_of, until, world


def producer_of(broker: FakeBroker, config: ProducerConfig | None = None) -> Producer:
    return Producer("senders", nameservers=broker.address, config=config, world=world())


def test_a_send_tells_where_the_message_lies() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, producer_of(broker) as producer:
            message = Message("orders", b"one", tag="new", keys=["o-1", "o-2"], flag=7)
            message.properties = {"color": "red"}
            sent = await producer.send(message)
            assert sent.queue == queue_of("orders")
            assert sent.queue_offset == 0
            assert sent.status is SendStatus.OK
            stored = decode_record(broker.queue("orders").records[0])
            assert stored.body == b"one"
            assert stored.flag == 7
            assert stored.properties == {
                "color": "red",
                "KEYS": "o-1 o-2",
                "TAGS": "new",
                "WAIT": "true",
                "UNIQ_KEY": sent.message_id,
            }

    play(main)


def test_queues_take_turns() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker, producer_of(broker) as producer:
            sent = [await producer.send(Message("orders", b"x")) for _ in range(8)]
            numbers = [each.queue.number for each in sent]
            assert sorted(numbers[:4]) == [0, 1, 2, 3]
            assert numbers[:4] == numbers[4:]

    play(main)


def test_concurrent_sends_ask_for_the_route_once_and_have_different_ids() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker, producer_of(broker) as producer:
            sends = [producer.send(Message("orders", b"x")) for _ in range(200)]
            sent = await asyncio.gather(*sends)
            assert len({each.message_id for each in sent}) == 200
            assert broker.count(RouteOfTopic) == 1

    play(main)


def test_equal_keys_go_to_one_queue_however_name_servers_list_brokers() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 3}, "broker-b") as b, FakeBroker({"t": 3}, "broker-a") as a:
            a.others = {"broker-b": b.address}
            b.others = {"broker-a": a.address}
            async with producer_of(a) as one, producer_of(b) as two:
                for key in ("o-1", "o-2", "o-17", 42):
                    first = await one.send(Message("t", b"x"), key=key)
                    second = await two.send(Message("t", b"x"), key=key)
                    assert first.queue == second.queue

    play(main)


def test_a_selector_or_a_queue_decides() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker, producer_of(broker) as producer:
            chosen = await producer.send(
                Message("orders", b"x"), queue_selector=lambda queues, message: queues[-1]
            )
            assert chosen.queue.number == 3
            named = await producer.send(Message("orders", b"x"), queue=queue_of("orders", 2))
            assert named.queue.number == 2
            with pytest.raises(UsageError, match="no queue"):
                await producer.send(Message("orders", b"x"), queue=queue_of("orders", 9))
            with pytest.raises(UsageError, match="exclude"):
                await producer.send(Message("orders", b"x"), queue=queue_of("orders"), key="k")

    play(main)


def test_a_batch_gets_offsets_in_a_row() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, producer_of(broker) as producer:
            messages = [Message("orders", b"%d" % n, tag=f"t{n}") for n in range(3)]
            sent = await producer.send_batch(messages, key="k")
            assert [each.queue_offset for each in sent] == [0, 1, 2]
            assert len({each.queue for each in sent}) == 1
            assert len({each.offset_id for each in sent}) == 3
            records = broker.queue("orders", sent[0].queue.number).records
            stored = [decode_record(record) for record in records]
            assert [message.body for message in stored] == [b"0", b"1", b"2"]
            assert [message.tag for message in stored] == ["t0", "t1", "t2"]
            assert [m.properties["UNIQ_KEY"] for m in stored] == [s.message_id for s in sent]

    play(main)


def test_a_batch_of_mixed_or_delayed_messages_is_refused() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, producer_of(broker) as producer:
            with pytest.raises(UsageError, match="one topic"):
                await producer.send_batch([Message("orders", b"x"), Message("other", b"x")])
            with pytest.raises(UsageError, match="delayed"):
                await producer.send_batch([Message("orders", b"x", delay_level=1)])
            with pytest.raises(UsageError):
                await producer.send_batch([])

    play(main)


def test_a_oneway_send_arrives_without_an_answer() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, producer_of(broker) as producer:
            message_id = await producer.send_oneway(Message("orders", b"x"))
            await until(lambda: broker.bodies("orders"))
            header = broker.last(SendMessageV2).read(SendMessageV2)
            assert decode(header.properties or "")["UNIQ_KEY"] == message_id

    play(main)


@pytest.mark.parametrize(("kind", "bits"), [("zlib", 0x301), ("lz4", 0x101), ("zstd", 0x201)])
def test_a_large_body_is_compressed(kind: str, bits: int) -> None:
    async def main() -> None:
        config = ProducerConfig(compression=kind)
        async with FakeBroker({"orders": 1}) as broker, producer_of(broker, config) as producer:
            await producer.send(Message("orders", b"x" * 4096))
            await producer.send(Message("orders", b"x" * 4095))
            large, small = (decode_record(r) for r in broker.queue("orders").records)
            assert large.sys_flag == bits
            assert len(large.body) < 4096
            assert small.sys_flag == 0
            opened = decode_record(broker.queue("orders").records[0], opens_body=True)
            assert opened.body == b"x" * 4096

    play(main)


def test_a_failed_send_is_tried_at_another_broker() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}, "broker-a") as a, FakeBroker({"t": 1}, "broker-b") as b:
            a.others = {"broker-b": b.address}
            b.refuse = lambda command, peer: 14 if command.code == SendMessageV2.code else None
            async with producer_of(a) as producer:
                sent = [await producer.send(Message("t", b"x")) for _ in range(6)]
                assert {each.queue.broker for each in sent} == {"broker-a"}
                assert b.count(SendMessageV2) == 1, "it is avoided from then on"

    play(main)


def test_a_broker_that_is_gone_costs_no_send() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}, "broker-a") as a:
            a.others = {"broker-b": "127.0.0.1:1"}
            async with producer_of(a) as producer:
                sent = [await producer.send(Message("t", b"x")) for _ in range(4)]
                assert {each.queue.broker for each in sent} == {"broker-a"}

    play(main)


def test_a_short_outage_of_the_only_broker_is_waited_out() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            failures = iter([2, 2])
            broker.refuse = lambda command, peer: (
                next(failures, None) if command.code == SendMessageV2.code else None
            )
            sent = await producer.send(Message("t", b"x"))
            assert sent.queue_offset == 0
            assert broker.count(SendMessageV2) == 3

    play(main)


def test_when_all_attempts_fail_the_last_failure_is_the_cause() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            broker.refuse = lambda command, peer: 2 if command.code == SendMessageV2.code else None
            with pytest.raises(SendFailed, match="code 2") as failed:
                await producer.send(Message("t", b"x"))
            assert failed.value.__cause__ is not None

    play(main)


def test_a_refusal_that_others_would_repeat_is_raised_at_once() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            broker.refuse = lambda command, peer: 16 if command.code == SendMessageV2.code else None
            with pytest.raises(NoPermission, match="refused by the test"):
                await producer.send(Message("t", b"x"))
            assert broker.count(SendMessageV2) == 1

    play(main)


def test_a_send_with_a_key_is_repeated_at_its_own_queue_only() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}, "broker-a") as a, FakeBroker({"t": 1}, "broker-b") as b:
            a.others = {"broker-b": b.address}
            async with producer_of(a) as producer:
                failures = iter([2, 14])
                b.refuse = lambda command, peer: (
                    next(failures, None) if command.code == SendMessageV2.code else None
                )
                sent = await producer.send(Message("t", b"x"), queue=queue_of("t", 0, "broker-b"))
                assert sent.queue_offset == 0
                assert (a.count(SendMessageV2), b.count(SendMessageV2)) == (0, 3)

    play(main)


def test_without_retries_nothing_is_repeated() -> None:
    async def main() -> None:
        config = ProducerConfig(retries=0)
        async with FakeBroker({"t": 1}) as broker, producer_of(broker, config) as producer:
            broker.refuse = lambda command, peer: 2 if command.code == SendMessageV2.code else None
            for choice in ({}, {"key": "k"}):
                with pytest.raises(SendFailed):
                    await producer.send(Message("t", b"x"), **choice)  # type: ignore[arg-type]
            assert broker.count(SendMessageV2) == 2

    play(main)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_stored_but_late_is_a_status_and_not_an_error(code: int, status: SendStatus) -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            answer = broker._send

            def late(command: object, peer: object) -> object:
                reply = answer(command, peer)  # type: ignore[arg-type]
                reply.code = code
                return reply

            broker._send = late  # type: ignore[method-assign, assignment]
            assert (await producer.send(Message("t", b"x"))).status is status

    play(main)


def test_an_unanswered_send_gives_up_in_time() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            await producer.send(Message("t", b"x"))

            async def never(command: object, peer: object) -> None:
                await asyncio.sleep(3600)

            broker._send = never  # type: ignore[method-assign, assignment]
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(SendFailed, match="in time"):
                await producer.send(Message("t", b"x"))
            assert 2.9 < loop.time() - began < 3.5
            began = loop.time()
            with pytest.raises(SendFailed):
                await producer.send(Message("t", b"x"), timeout_ms=200)
            assert loop.time() - began < 0.5

    play(main)


def test_a_topic_that_does_not_exist_is_made_after_the_template() -> None:
    async def main() -> None:
        async with FakeBroker() as broker, producer_of(broker) as producer:
            with pytest.raises(RouteNotFound, match="'orders' does not exist"):
                await producer.send(Message("orders", b"x"))
            broker.template_queues = 8
            assert len(await producer.queues("orders")) == 4
            await producer.send(Message("orders", b"x"))
            assert broker.topics["orders"] == 4

    play(main)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message("", b"x"), "blank"),
        (Message("no dots.", b"x"), "illegal"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "RocketMQ's own"),
        (Message("t", b""), "at least one byte"),
        (Message("t", b"x" * (4 * 1024 * 1024 + 1)), "4194305 bytes; at most 4194304"),
        (Message("t", "text"), "bytes, not str"),  # type: ignore[arg-type]
        (Message("t", b"x", keys="one"), "list of words"),
        (Message("t", b"x", tag="a\x02b"), "U"),
        (Message("t", b"x", properties={"TAGS": "forged"}), "RocketMQ's own"),
        (Message("t", b"x", properties={"a": "b\x02DELAY\x013"}), "separate"),
        (Message("t", b"x", properties={"": "b"}), "name"),
        (Message("t", b"x", properties={"a": "ü" * 16384}), "at most 32767"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is_sent(message: Message, words: str) -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker, producer_of(broker) as producer:
            for send in (producer.send, producer.send_oneway):
                with pytest.raises(UsageError, match=words):
                    await send(message)
            assert not broker.count(SendMessageV2)

    play(main)


def test_the_largest_body_is_taken() -> None:
    async def main() -> None:
        config = ProducerConfig(compression="none")
        async with FakeBroker({"t": 1}) as broker, producer_of(broker, config) as producer:
            await producer.send(Message("t", bytes(4 * 1024 * 1024)))
            assert len(broker.bodies("t")[0]) == 4 * 1024 * 1024

    play(main)


def test_brokers_hear_of_the_group_and_of_its_end() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as broker:
            async with producer_of(broker) as producer:
                await producer.send(Message("t", b"x"))
                await until(lambda: broker.heartbeats)
                assert [p.group_name for p in broker.heartbeats[-1].producers] == ["senders"]
            assert broker.last(Unregister).read(Unregister).producer_group == "senders"
            await until(lambda: not broker.peers)

    play(main)


def test_a_producer_that_is_not_started_or_closed_says_so() -> None:
    async def main() -> None:
        producer = Producer("senders", nameservers="127.0.0.1:1", world=world())
        with pytest.raises(ClosedError):
            await producer.send(Message("t", b"x"))
        async with producer:
            pass
        with pytest.raises(ClosedError):
            await producer.send_batch([Message("t", b"x")])

    play(main)


def test_without_name_servers_the_variables_to_set_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPROCKET_NAMESERVERS", raising=False)
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(ConfigError, match="SPROCKET_NAMESERVERS or NAMESRV_ADDR"):
        Producer("senders")
    monkeypatch.setenv("NAMESRV_ADDR", "a:1;b:2")
    Producer("senders")


def test_a_queue_of_an_unwritable_topic_is_not_chosen() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 0}) as broker, producer_of(broker) as producer:
            with pytest.raises(RouteNotFound, match="takes messages"):
                await producer.send(Message("t", b"x"), queue=QueueId("t", "broker-a", 0))

    play(main)
