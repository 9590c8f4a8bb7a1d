"""The client against RocketMQ's own name server and broker, and in one group with a Java member."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sprocket.base.errors import RouteNotFound
from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.client.producer import Producer, SendStatus
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.clientcore.replies import PullStatus
from sprocket.message.message import Message, StoredMessage
from tests.compat.javaland import (
    CLIENT_VERSIONS,
    JavaBroker,
    JavaDriver,
    JavaNameServer,
    queued,
    require_java,
    until,
)
from tests.support import run

pytestmark = [pytest.mark.java, pytest.mark.process]


@pytest.fixture(scope="module")
def nameserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_java()
    folder: Path = tmp_path_factory.mktemp("java")
    with JavaNameServer(folder) as names, JavaBroker(folder, names.address):
        yield names.address


def play(main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    run(whole())


@pytest.mark.parametrize("header", ["json", "binary"])
def test_everything_that_is_sent_is_read_again(nameserver: str, header: str) -> None:
    topic = f"sent-{header}"

    async def main() -> None:
        config = ProducerConfig(header=header)
        async with Producer("senders", nameservers=nameserver, config=config) as producer:
            message = Message(topic, b"one \x00\xff", tag="a", keys=["k1", "k2"], flag=7)
            message.properties = {"stadt": "Köln"}
            sent = await producer.send(message)
            assert sent.status is SendStatus.OK
            await producer.send(Message(topic, b"x" * 10_000, tag="b"), queue=sent.queue)
            parts = [Message(topic, b"%d" % n, tag="c", keys=[f"p{n}"]) for n in range(3)]
            batch = await producer.send_batch(parts, queue=sent.queue)
            assert [each.queue_offset for each in batch] == [2, 3, 4]
            await producer.send_oneway(Message(topic, b"last"), queue=sent.queue)
            queue = sent.queue
        async with PullConsumer(f"reader-{header}", nameservers=nameserver) as reader:
            await queued(reader, queue, 6)
            pulled = await reader.pull(queue, 0)
            assert pulled.status is PullStatus.FOUND
            bodies = [message.body for message in pulled.messages]
            assert bodies == [b"one \x00\xff", b"x" * 10_000, b"0", b"1", b"2", b"last"]
            first = pulled.messages[0]
            assert (first.tag, first.keys, first.flag) == ("a", ["k1", "k2"], 7)
            assert first.properties["stadt"] == "Köln"
            assert first.properties["UNIQ_KEY"] == sent.message_id
            assert pulled.messages[3].tag == "c"
            tagged = await reader.pull(queue, 0, tags="b")
            assert [message.queue_offset for message in tagged.messages] == [1]
            none = await reader.pull(queue, 0, tags="z")
            assert none.status is PullStatus.NO_MATCHED
            assert (await reader.pull(queue, 6)).status is PullStatus.NO_NEW
            moved = await reader.pull(queue, 99)
            assert (moved.status, moved.next_offset) == (PullStatus.OFFSET_ILLEGAL, 6)
            assert await reader.committed(queue) is None
            await reader.commit(queue, 6)
            assert await reader.committed(queue) == 6
            assert await reader.offset_at(queue, first.stored_ms) == 0

    play(main)


def test_a_new_group_from_last_reads_no_history_of_a_java_broker(nameserver: str) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with (
            Producer("senders", nameservers=nameserver) as producer,
            PullConsumer("reader", nameservers=nameserver) as reader,
        ):
            for number in range(10):
                sent = await producer.send(Message("history", b"old %d" % number))
                await queued(reader, sent.queue, sent.queue_offset + 1)
            async with PushConsumer("newcomers", nameservers=nameserver) as consumer:

                @consumer.on("history")
                async def take(message: StoredMessage) -> None:
                    got.append(message.body)

                await until(lambda: len(consumer.queues) >= 5)
                news: list[bytes] = []
                while not got:
                    news.append(b"new %d" % len(news))
                    await producer.send(Message("history", news[-1]))
                    await asyncio.sleep(0.05)
                final = [b"final %d" % number for number in range(8)]
                for body in final:
                    await producer.send(Message("history", body))
                await until(lambda: {*final} <= {*got})
        assert {*got} <= {*news, *final}

    play(main)


def test_all_topics_are_found_at_java_servers_but_their_own(nameserver: str) -> None:
    async def main() -> None:
        got: list[str] = []
        async with Producer("senders", nameservers=nameserver) as producer:
            await producer.send(Message("matched", b"x"))
            async with PushConsumer("all", nameservers=nameserver, start="first") as consumer:

                @consumer.on(re.compile(".*"))
                async def take(message: StoredMessage) -> None:
                    got.append(message.topic)

                await until(lambda: "matched" in got)
                await asyncio.sleep(0.5)
                topics = {queue.topic for queue in consumer.queues} - {"%RETRY%all"}
                assert "matched" in topics
                assert not [t for t in topics if t.startswith(("%", "rmq_sys_", "RMQ_SYS"))]
                assert not topics & {"DefaultCluster", "broker-a", "TBW102", "SELF_TEST_TOPIC"}
                assert not [topic for topic in topics if topic.endswith("_REPLY_TOPIC")]

    play(main)


def test_a_failing_message_returns_and_dies_at_a_java_broker(nameserver: str) -> None:
    async def main() -> None:
        seen: list[tuple[int, str, str | None]] = []
        config = ConsumerConfig(reconsume_max=1)
        consumer = PushConsumer("failing", nameservers=nameserver, start="first", config=config)
        async with Producer("senders", nameservers=nameserver) as producer, consumer:

            @consumer.on("failures", tags="bad")
            async def fail(message: StoredMessage) -> Later:
                seen.append((message.reconsume_times, message.topic, message.tag))
                return Later(1)

            await producer.send(Message("failures", b"x", tag="bad"))
            await producer.send(Message("failures", b"x", tag="good"))
            await until(lambda: len(seen) == 2)
            assert seen == [(0, "failures", "bad"), (1, "failures", "bad")]
            async with PullConsumer("undertaker", nameservers=nameserver) as reader:

                async def is_dead() -> bool:
                    try:
                        (queue,) = await reader.queues("%DLQ%failing")
                    except RouteNotFound:
                        return False
                    messages = (await reader.pull(queue, 0)).messages
                    return [message.body for message in messages] == [b"x"]

                await until(is_dead)

    play(main)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_a_java_member_and_ours_share_a_group(
    nameserver: str, version: str, tmp_path: Path
) -> None:
    topic = f"shared-{version.replace('.', '-')}"

    async def main() -> None:
        got: list[bytes] = []
        async with Producer("senders", nameservers=nameserver) as producer:
            await producer.send(Message(topic, b"first"))
            with JavaDriver(version, work=tmp_path) as driver:
                await asyncio.to_thread(
                    driver.call,
                    "consumer.start",
                    group=topic,
                    namesrv=nameserver,
                    topic=topic,
                )
                async with PushConsumer(topic, nameservers=nameserver, start="first") as consumer:

                    @consumer.on(topic)
                    async def take(message: StoredMessage) -> None:
                        got.append(message.body)

                    def ours() -> set[int]:
                        return {q.number for q in consumer.queues if q.topic == topic}

                    async def theirs() -> set[int]:
                        answer = await asyncio.to_thread(driver.call, "consumer.queues")
                        return {q["queueId"] for q in answer["queues"] if q["topic"] == topic}

                    async def shared_out() -> bool:
                        return len(ours()) == 2 and await theirs() == {0, 1, 2, 3} - ours()

                    await until(shared_out)
                    for number in range(40):
                        await producer.send(Message(topic, b"%d" % number))

                    def bodies() -> set[bytes]:
                        return {event["body"] for event in driver.events("message")} | set(got)

                    await until(lambda: bodies() >= {b"%d" % number for number in range(40)})
                    assert len(set(got) & {b"%d" % number for number in range(40)}) == 20

    play(main)
