"""Our clients against Java's name server and broker, alone and beside a Java client."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sprocket import (
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    QueueId,
    ReplyError,
    RouteNotFound,
    StoredMessage,
    UsageError,
)
from sprocket.client import blocking
from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig, ProducerConfig, PullConfig
from sprocket.client.sending.sender import Sent
from sprocket.clientcore.replies import PullStatus, SendStatus
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    Json,
    mqadmin,
    queued,
    until,
    wait_until,
)
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java

BROKER = "broker-a"
QUICK = ConsumerConfig(
    rebalance_ms=1000, route_refresh_ms=2000, heartbeat_ms=5000, call_timeout_ms=PATIENT_MS
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def names(work: Path) -> Iterator[str]:
    """Address of the name server of a Java broker."""
    # A lease that is not given back is seen: who waits for its end waits for too long.
    lasting = ["-Drocketmq.broker.rebalance.lockMaxLiveTime=600000"]
    with (
        JavaNameServer(work) as servers,
        JavaBroker(work, servers.address, name=BROKER, jvm=lasting),
    ):
        yield servers.address


@pytest.fixture(scope="module")
def driver(names: str, work: Path) -> Iterator[JavaDriver]:
    """A Java client at the same broker."""
    with JavaDriver(work=work, properties=QUICK_REBALANCE) as running:
        running.call("producer.start", group="java", namesrv=names)
        running.call("pull.start", group="java", namesrv=names)
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, names: str) -> str:
    """A topic of the test's own with four queues."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)
    made = mqadmin(
        *("updateTopic", "-c", "DefaultCluster", "-t", name, "-r", "4", "-w", "4"), namesrv=names
    )
    assert "success" in made
    return name


async def send_all(names: str, topic: str, bodies: list[bytes], **more: object) -> None:
    async with Producer("ours", nameservers=names) as producer:
        await asyncio.gather(*(producer.send(Message(topic, body, **more)) for body in bodies))  # type: ignore[arg-type]


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%03d" % number for number in range(start, start + count)]


def dead_letters(names: str, group: str) -> str:
    return f"%DLQ%{group}"


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []

    async def __call__(self, message: StoredMessage) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return sorted(message.body for message in self.messages)


@pytest.mark.parametrize("header", ["json", "binary"])
def test_a_message_arrives_as_it_was_sent(
    names: str, driver: JavaDriver, topic: str, header: str
) -> None:
    async def send() -> Sent:
        config = ProducerConfig(header=header)
        async with Producer("ours", nameservers=names, config=config) as producer:
            return await producer.send(
                Message(
                    topic,
                    bytes(range(256)),
                    tag="weiß",
                    keys=["k1", "schlüssel"],
                    properties={"colour": "grün", "日本": "語😀"},
                    flag=-7,
                ),
                queue=QueueId(topic, BROKER, 2),
            )

    sent = run(send())
    driver.wait_queued(topic, 2, 1)
    (message,) = driver.call("pull.pull", topic=topic, queueId=2, offset=0)["messages"]

    assert (sent.queue, sent.queue_offset) == (QueueId(topic, BROKER, 2), 0)
    assert sent.status is SendStatus.OK
    assert message["body"] == bytes(range(256))
    assert (message["tags"], message["keys"], message["flag"]) == ("weiß", "k1 schlüssel", -7)
    assert message["properties"]["colour"] == "grün"
    assert message["properties"]["日本"] == "語😀"
    assert (message["msgId"], message["offsetMsgId"]) == (sent.message_id, sent.offset_id)
    for found in (sent.message_id, sent.offset_id):
        viewed = driver.call("query.view", topic=topic, id=found)["message"]
        assert viewed["body"] == bytes(range(256))
    wait_until(lambda: found_by_key(driver, topic, "schlüssel"))
    (by_key,) = found_by_key(driver, topic, "schlüssel")
    assert by_key["msgId"] == sent.message_id


def found_by_key(driver: JavaDriver, topic: str, key: str) -> list[Json]:
    """The index comes last, after the queues."""
    try:
        found: list[Json] = driver.call("query.byKey", topic=topic, key=key)["messages"]
    except JavaCallError:
        return []
    return found


def test_every_way_to_send_is_consumed_by_java(names: str, driver: JavaDriver, topic: str) -> None:
    async def send() -> None:
        async with Producer("ours", nameservers=names) as producer:
            await producer.send(Message(topic, b"plain"))
            await producer.send(Message(topic, b"keyed"), key="order-1")
            await producer.send(
                Message(topic, b"chosen"), queue_selector=lambda queues, _: queues[1]
            )
            await producer.send_oneway(Message(topic, b"oneway"))
            batch = [Message(topic, b"b1", tag="t"), Message(topic, b"b2", keys=["k"])]
            sent = await producer.send_batch(batch)
            assert [one.queue_offset for one in sent] == [
                sent[0].queue_offset, sent[0].queue_offset + 1,
            ]  # fmt: skip
            await producer.send(Message(topic, b"delayed", delay_level=1))

    run(send())
    driver.call("consumer.start", name=topic, group=f"G_{topic}", namesrv=names, topic=topic)
    heard = driver.wait_messages(7, consumer=topic)
    driver.call("consumer.stop", name=topic)

    expected = [b"plain", b"keyed", b"chosen", b"oneway", b"b1", b"b2", b"delayed"]
    assert sorted(message["body"] for message in heard) == sorted(expected)
    by_body = {message["body"]: message for message in heard}
    assert by_body[b"chosen"]["queueId"] == 1
    assert (by_body[b"b1"]["tags"], by_body[b"b2"]["keys"]) == ("t", "k")
    delay = by_body[b"delayed"]["storeTimestamp"] - by_body[b"delayed"]["bornTimestamp"]
    assert delay > 900


def test_equal_keys_choose_the_queue_that_java_chooses(
    names: str, driver: JavaDriver, topic: str
) -> None:
    keys = ["a", "order-1", "schlüssel", "日本語", "polygenelubricants", "x" * 40]
    messages = [{"text": key, "hash": key} for key in keys]
    theirs = driver.call("producer.sendMany", topic=topic, messages=messages)["results"]

    async def send() -> list[int]:
        async with Producer("ours", nameservers=names) as producer:
            return [
                (await producer.send(Message(topic, b"x"), key=key)).queue.number for key in keys
            ]

    assert run(send()) == [result["queueId"] for result in theirs]


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd"])
def test_long_bodies_travel_compressed_both_ways(
    names: str, driver: JavaDriver, topic: str, compression: str
) -> None:
    body = b"a long story " * 10_000

    async def send() -> None:
        config = ProducerConfig(compression=compression)
        async with Producer("ours", nameservers=names, config=config) as producer:
            await producer.send(Message(topic, body), queue=QueueId(topic, BROKER, 0))

    run(send())
    driver.call(
        "producer.start",
        name=compression,
        group=compression,
        namesrv=names,
        set={"compressType": compression.upper()} if compression != "zlib" else {},
    )
    driver.call("producer.send", name=compression, topic=topic, body=body, queueId=1)
    driver.call("producer.stop", name=compression)

    driver.wait_queued(topic, 0, 1)
    (ours,) = driver.call("pull.pull", topic=topic, queueId=0, offset=0)["messages"]
    assert ours["sha256"] == hashlib.sha256(body).hexdigest()
    assert ours["storeSize"] < len(body) / 10

    async def read() -> None:
        async with PullConsumer("ours", nameservers=names) as consumer:
            queue = QueueId(topic, BROKER, 1)
            await queued(consumer, queue, 1)
            pulled = await consumer.pull(queue, 0)
            assert [message.body for message in pulled.messages] == [body]
            assert pulled.messages[0].record_bytes < len(body) / 10

    run(read())


def test_a_topic_is_made_by_its_first_message(names: str) -> None:
    async def send() -> None:
        async with Producer("ours", nameservers=names) as producer:
            await producer.send(Message("MadeByUs", b"x"))
            assert {queue.number for queue in await producer.queues("MadeByUs")} == {0, 1, 2, 3}

    run(send())


def test_refusals_are_errors(names: str, topic: str) -> None:
    async def send() -> None:
        async with Producer("ours", nameservers=names) as producer:
            with pytest.raises(UsageError, match="no queue of topic"):
                await producer.send(Message(topic, b"x"), queue=QueueId(topic, BROKER, 99))
            with pytest.raises(UsageError, match="takes no messages"):
                await producer.send(Message("RMQ_SYS_TRANS_HALF_TOPIC", b"x"))
            with pytest.raises(ReplyError, match="properties length"):
                await producer.send(Message(topic, b"x", properties={"long": "x" * 32_700}))
        async with PullConsumer("ours", nameservers=names) as consumer:
            with pytest.raises(RouteNotFound):
                await consumer.queues("Nowhere")

    run(send())


def test_pulls_end_in_four_ways(names: str, topic: str) -> None:
    queue = QueueId(topic, BROKER, 2)

    async def story() -> None:
        async with (
            Producer("ours", nameservers=names) as producer,
            PullConsumer("ours_pull", nameservers=names) as consumer,
        ):
            assert [each.number for each in await consumer.queues(topic)] == [0, 1, 2, 3]
            empty = await consumer.pull(queue, 0)
            for number in range(3):
                await producer.send(
                    Message(topic, b"%d" % number, tag="AB"[number % 2]), queue=queue
                )
            await queued(consumer, queue, 3)
            found = await consumer.pull(queue, 0)
            only_b = await consumer.pull(queue, 0, tags="B")
            none = await consumer.pull(queue, 0, tags="C")
            at_end = await consumer.pull(queue, 3)
            beyond = await consumer.pull(queue, 9)
            two = await consumer.pull(queue, 0, count=2)

            assert (empty.status, empty.next_offset) == (PullStatus.NO_NEW, 0)
            assert (found.status, found.next_offset) == (PullStatus.FOUND, 3)
            assert (found.min_offset, found.max_offset) == (0, 3)
            assert [message.body for message in found.messages] == [b"0", b"1", b"2"]
            assert [message.queue for message in found.messages] == [queue] * 3
            assert [message.queue_offset for message in only_b.messages] == [1]
            assert (none.status, none.next_offset) == (PullStatus.NO_MATCHED, 3)
            assert (at_end.status, at_end.next_offset) == (PullStatus.NO_NEW, 3)
            assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 3)
            assert (len(two.messages), two.next_offset) == (2, 2)

    run(story())


def test_a_held_pull_is_answered_when_something_comes(names: str, topic: str) -> None:
    queue = QueueId(topic, BROKER, 0)
    # A pull that was held for as long as is set here would not end in the time of a test.
    config = PullConfig(hold_ms=600_000, pull_timeout_ms=660_000)

    async def story() -> None:
        async with (
            Producer("ours", nameservers=names) as producer,
            PullConsumer("ours_pull", nameservers=names, config=config) as consumer,
        ):
            held = asyncio.create_task(consumer.pull_blocking(queue, 0))
            assert (await consumer.pull(queue, 0)).status is PullStatus.NO_NEW
            assert not held.done()
            await producer.send(Message(topic, b"wakes it"), queue=queue)
            assert [message.body for message in (await held).messages] == [b"wakes it"]
            nothing = await consumer.pull_blocking(queue, 1, wait_ms=300)
            assert nothing.status is PullStatus.NO_NEW

    run(story())


def test_offsets_are_shared_with_java(names: str, driver: JavaDriver, topic: str) -> None:
    queue = QueueId(topic, BROKER, 1)
    group = f"G_{topic}"
    driver.call("pull.start", name=topic, group=group, namesrv=names)
    java: Json = {"name": topic, "topic": topic, "queueId": 1}

    async def story() -> None:
        await send_all(names, topic, numbered(12))
        async with PullConsumer(group, nameservers=names) as consumer:
            assert await consumer.committed(queue) is None
            await queued(consumer, queue, 3)
            assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 3)
            await consumer.commit(queue, 2)
            assert await consumer.committed(queue) == 2
            assert (await driver.ask("pull.fetchOffset", **java))["offset"] == 2
            await driver.ask("pull.updateOffset", **java, offset=1)
            assert await consumer.committed(queue) == 1

            pulled = await consumer.pull(queue, 0)
            times = [message.stored_ms for message in pulled.messages]
            for at in (times[0] - 1, times[0], times[1], times[2], times[2] + 1):
                mine = await consumer.offset_at(queue, at)
                asked = await driver.ask("query.search", topic=topic, queueId=1, timestamp=at)
                assert mine == asked["offset"]

    run(story())
    driver.call("pull.stop", name=topic)


@asynccontextmanager
async def listening(
    names: str, group: str, topic: str, listener: object, **more: object
) -> AsyncIterator[PushConsumer]:
    """A push consumer with a client id of its own."""
    async with PushConsumer(group, nameservers=names, **{"config": QUICK, **more}) as consumer:  # type: ignore[arg-type]
        consumer.subscribe(topic, listener=listener)  # type: ignore[arg-type]
        yield consumer


def test_two_of_ours_and_one_of_java_share_a_group(
    names: str, driver: JavaDriver, topic: str
) -> None:
    """Both share queues out alike; nothing is lost, and nothing comes twice once settled."""
    group = f"G_{topic}"
    ours = [Heard(), Heard()]
    # Members with one client id are one member, so each has a configuration of its own.
    configs = [ConsumerConfig(rebalance_ms=1000, instance=f"ours-{n}") for n in range(2)]

    async def story() -> None:
        async with (
            listening(names, group, topic, ours[0], config=configs[0]) as one,
            listening(names, group, topic, ours[1], config=configs[1]) as two,
        ):
            await driver.ask("consumer.start", name=topic, group=group, namesrv=names, topic=topic)

            async def are_settled() -> bool:
                held = (await driver.ask("consumer.queues", name=topic))["queues"]
                numbers = [queue["queueId"] for queue in held if queue["topic"] == topic]
                mine = [numbers_of(member, topic) for member in (one, two)]
                everything = numbers + mine[0] + mine[1]
                shares = sorted(map(len, [numbers, *mine]))
                return sorted(everything) == [0, 1, 2, 3] and shares == [1, 1, 2]

            await until(are_settled)
            await send_all(names, topic, numbered(120))

            def everything() -> list[bytes]:
                return sorted(ours[0].bodies + ours[1].bodies + java_bodies(driver, topic))

            await until(lambda: len(everything()) >= 120)
            assert everything() == numbered(120)
            counts = Counter({"one": len(ours[0].messages), "two": len(ours[1].messages)})
            assert min(counts.values()) >= 30

            await driver.ask("consumer.stop", name=topic)
            await until(lambda: sum(len(numbers_of(member, topic)) for member in (one, two)) == 4)
            await send_all(names, topic, numbered(40, 200))
            await until(lambda: set(numbered(40, 200)) <= set(everything()))
            assert len(java_bodies(driver, topic)) == 120 - sum(counts.values())

    run(story())


def numbers_of(member: PushConsumer, topic: str) -> list[int]:
    """Numbers of the topic's queues that a member has; it may have its group's retry queue too."""
    return [queue.number for queue in member.queues if queue.topic == topic]


def java_bodies(driver: JavaDriver, consumer: str) -> list[bytes]:
    return [event["body"] for event in driver.events("message") if event["consumer"] == consumer]


def test_a_failing_listener_gets_the_message_again(names: str, topic: str) -> None:
    tries: list[tuple[bytes, int, str, str | None]] = []

    async def fail_twice(message: StoredMessage) -> Later | None:
        tries.append((message.body, message.reconsume_times, message.topic, message.tag))
        return Later(1) if message.reconsume_times < 2 else None

    async def story() -> None:
        await send_all(names, topic, [b"bad"], tag="t")
        async with listening(names, f"G_{topic}", topic, fail_twice, start="first"):
            await until(lambda: len(tries) == 3)

    run(story())
    assert tries == [(b"bad", times, topic, "t") for times in range(3)]


def test_what_always_fails_becomes_a_dead_letter(
    names: str, driver: JavaDriver, topic: str
) -> None:
    group = f"G_{topic}"
    times: list[int] = []

    async def always(message: StoredMessage) -> Later:
        times.append(message.reconsume_times)
        return Later(1)

    async def story() -> None:
        await send_all(names, topic, [b"bad"], tag="t", properties={"n": "1"})
        config = ConsumerConfig(rebalance_ms=1000, reconsume_max=1)
        async with listening(names, group, topic, always, start="first", config=config):
            await until(lambda: len(times) == 2)
            await until(lambda: letters(driver, group))

    run(story())
    assert times == [0, 1]
    (letter,) = letters(driver, group)
    assert (letter["body"], letter["tags"], letter["properties"]["n"]) == (b"bad", "t", "1")


def letters(driver: JavaDriver, group: str) -> list[Json]:
    try:
        pulled = driver.call("pull.pull", topic=f"%DLQ%{group}", queueId=0, offset=0)
    except JavaCallError:
        return []
    messages: list[Json] = pulled["messages"]
    return messages


def test_a_group_that_is_new_begins_where_it_was_told(names: str, topic: str) -> None:
    """From last means from now on, which Java's own clients do not keep to on a young topic."""

    async def story() -> None:
        await send_all(names, topic, numbered(8))
        last_ms = 0
        async with PullConsumer("ours_pull", nameservers=names) as consumer:
            for queue in await consumer.queues(topic):
                await queued(consumer, queue, 2)
                for message in (await consumer.pull(queue, 0)).messages:
                    last_ms = max(last_ms, message.stored_ms)
        # A start at a time is exact to the second.
        next_second = last_ms // 1000 + 1
        middle = datetime.fromtimestamp(next_second, UTC)
        await until(lambda: time.time() > next_second)
        await send_all(names, topic, numbered(8, 100))
        async with PullConsumer("ours_pull", nameservers=names) as consumer:
            for queue in await consumer.queues(topic):
                await queued(consumer, queue, 4)
        heard = {"first": Heard(), "last": Heard(), "time": Heard()}
        async with (
            listening(names, f"F_{topic}", topic, heard["first"], start="first"),
            listening(names, f"L_{topic}", topic, heard["last"], start="last") as last,
            listening(names, f"T_{topic}", topic, heard["time"], start=middle),
        ):
            await until(lambda: len(last.queues) >= 4)
            news: list[bytes] = []
            while not heard["last"].messages:
                news.append(b"new-%d" % len(news))
                await send_all(names, topic, [news[-1]])
                await asyncio.sleep(0.05)
            final = [b"final-%d" % number for number in range(8)]
            await send_all(names, topic, final)
            for listener in heard.values():
                await until(lambda listener=listener: set(final) <= set(listener.bodies))

        assert heard["first"].bodies == sorted([*numbered(8), *numbered(8, 100), *news, *final])
        assert heard["time"].bodies == sorted([*numbered(8, 100), *news, *final])
        assert set(heard["last"].bodies) <= {*news, *final}

    run(story())


def test_our_consumer_goes_on_where_java_stopped_and_the_other_way(
    names: str, driver: JavaDriver, topic: str
) -> None:
    group = f"G_{topic}"
    driver.call("producer.sendMany", topic=topic, messages=[{"text": f"{n:03}"} for n in range(8)])
    driver.call("consumer.start", name=topic, group=group, namesrv=names, topic=topic, threads=1)
    last = driver.wait_messages(8, consumer=topic)[-1]
    driver.call("consumer.stop", name=topic)
    heard = Heard()

    async def story() -> None:
        await send_all(names, topic, numbered(8, 100))
        async with listening(names, group, topic, heard, start="first"):
            await until(lambda: set(numbered(8, 100)) <= set(heard.bodies))

    run(story())
    # The last one was in Java's listener when its consumer was stopped.
    assert set(heard.bodies) <= {last["body"], *numbered(8, 100)}
    for queue in range(4):
        driver.call("pull.start", name=f"{topic}{queue}", group=group, namesrv=names)
        at = {"name": f"{topic}{queue}", "topic": topic, "queueId": queue}
        end = driver.call("query.offsets", client=at["name"], topic=topic, queueId=queue)
        assert driver.call("pull.fetchOffset", **at)["offset"] == end["maxOffset"]
        driver.call("pull.stop", name=at["name"])
    again = f"{topic}_again"
    driver.call("consumer.start", name=again, group=group, namesrv=names, topic=topic)
    driver.call("producer.send", topic=topic, body=b"later")
    assert [message["body"] for message in driver.wait_messages(1, consumer=again)] == [b"later"]
    driver.call("consumer.stop", name=again)


def test_an_ordered_consumer_gets_each_queue_in_order_and_leaves_it_to_java(
    names: str, driver: JavaDriver, topic: str
) -> None:
    group = f"G_{topic}"
    heard: list[StoredMessage] = []
    failed: set[bytes] = set()

    async def listener(message: StoredMessage) -> Later | None:
        heard.append(message)
        if message.body in (b"004", b"005") and message.body not in failed:
            failed.add(message.body)
            return Later()
        return None

    async def story() -> None:
        async with Producer("ours", nameservers=names) as producer:
            for number, body in enumerate(numbered(20)):
                queue = QueueId(topic, BROKER, number % 2)
                await producer.send(Message(topic, body), queue=queue)
        async with listening(names, group, topic, listener, start="first", ordered=True):
            await until(lambda: len(heard) >= 22)

    run(story())
    for queue in range(2):
        expected = numbered(20)[queue::2]
        in_turn = [message.body for message in heard if message.queue.number == queue]
        assert in_turn == [*expected[:3], expected[2], *expected[3:]]
    driver.call("consumer.start", name=topic, group=group, namesrv=names, topic=topic, orderly=True)
    driver.call("producer.send", topic=topic, body=b"next", queueId=1)
    assert [message["body"] for message in driver.wait_messages(1, consumer=topic)] == [b"next"]
    driver.call("consumer.stop", name=topic)


def test_messages_are_iterated_over(names: str, topic: str) -> None:
    async def story() -> list[bytes]:
        await send_all(names, topic, numbered(8))
        found = []
        async with PushConsumer(
            f"G_{topic}", nameservers=names, start="first", config=QUICK
        ) as consumer:
            consumer.subscribe(topic)
            async for message in consumer:
                found.append(message.body)
                if len(found) == 8:
                    break
        return sorted(found)

    assert run(story()) == numbered(8)


def test_blocking_clients_do_the_same(names: str, topic: str) -> None:
    with blocking.Producer("ours", nameservers=names) as producer:
        sent = producer.send(Message(topic, b"000", tag="t"))
        producer.send_batch([Message(topic, b"001", tag="t"), Message(topic, b"002", tag="u")])
    with blocking.PullConsumer("ours_pull", nameservers=names, config=PullConfig()) as puller:
        pulled = puller.pull_blocking(sent.queue, sent.queue_offset)
        assert pulled.messages[0].body == b"000"
    heard: list[bytes] = []
    with blocking.PushConsumer(
        f"G_{topic}", nameservers=names, start="first", config=QUICK
    ) as push:

        @push.on(topic, tags="t")
        def listen(message: StoredMessage) -> None:
            heard.append(message.body)

        wait_until(lambda: len(heard) >= 2)
    assert sorted(heard) == [b"000", b"001"]
