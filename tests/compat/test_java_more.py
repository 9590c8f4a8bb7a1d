"""Broadcasting, lite pull, requests and replies: ours beside Java's, at servers of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprocket import LitePullConsumer, Message, Producer, PushConsumer, StoredMessage
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ConsumerConfig, LitePullConfig
from tests.compat.javaland import QUICK_REBALANCE, JavaBroker, JavaDriver, JavaNameServer, until
from tests.compat.sprocketland import SprocketNode
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("more")


@pytest.fixture(scope="module")
def java_names(work: Path) -> Iterator[str]:
    """Address of the name server of a Java broker."""
    with JavaNameServer(work) as servers, JavaBroker(work, servers.address):
        yield servers.address


@pytest.fixture(scope="module")
def folder(work: Path) -> Path:
    """Where broadcasting consumers of both kinds keep their positions."""
    return work / "offsets"


@pytest.fixture(scope="module")
def driver(work: Path, folder: Path) -> Iterator[JavaDriver]:
    properties = {**QUICK_REBALANCE, "rocketmq.client.localOffsetStoreDir": str(folder)}
    with JavaDriver("4.9.8", work=work, properties=properties) as running:
        yield running


async def send(names: str, topic: str, *bodies: bytes) -> None:
    async with Producer("ours", nameservers=names) as producer:
        for body in bodies:
            await producer.send(Message(topic, body))


async def queues_held(driver: JavaDriver, name: str, topic: str) -> int:
    held = (await driver.ask("consumer.queues", name=name))["queues"]
    return sum(queue["topic"] == topic for queue in held)


def test_broadcasting_members_of_both_kinds_get_everything_and_share_a_file(
    driver: JavaDriver, node: SprocketNode, folder: Path
) -> None:
    """The positions go from Java's member to ours and back, under one client id."""
    topic, group, names = "MoreNews", "G_MoreNews", node.names
    host = ClientEnvironment.real().host
    java: dict[str, Any] = {
        "group": group, "namesrv": names, "topic": topic, "from": "first", "broadcast": True,
        "clientIp": host, "instance": "shared",
    }  # fmt: skip

    def ours(instance: str, got: list[bytes]) -> PushConsumer:
        config = ConsumerConfig(instance=instance, offsets_folder=str(folder))
        consumer = PushConsumer(
            group, nameservers=names, start="first", broadcasting=True, config=config
        )

        async def keep(message: StoredMessage) -> None:
            got.append(message.body)

        consumer.subscribe(topic, listener=keep)
        return consumer

    async def test() -> None:
        beside: list[bytes] = []
        after: list[bytes] = []
        await send(names, topic, b"1", b"2", b"3")
        began = await driver.ask("consumer.start", **{"name": "first", **java})
        assert began["clientId"] == f"{host}@shared"
        async with ours("beside", beside):
            await driver.messages(3, consumer="first")
            await until(lambda: len(beside) == 3)
        await driver.ask("consumer.stop", name="first")

        await send(names, topic, b"4", b"5")
        async with ours("shared", after) as consumer:
            assert consumer.client_id == began["clientId"]
            await until(lambda: len(after) == 2)
        assert sorted(after) == [b"4", b"5"]

        await send(names, topic, b"6")
        await driver.ask("consumer.start", **{"name": "second", **java})
        await driver.messages(1, consumer="second")
        await asyncio.sleep(1)
        heard = [event["body"] for event in driver.events("message")][3:]
        assert heard == [b"6"]
        await driver.ask("consumer.stop", name="second")

    run(test())


@pytest.mark.parametrize("asker", ["java", "ours"])
def test_java_and_ours_answer_each_other(
    driver: JavaDriver, node: SprocketNode, asker: str
) -> None:
    topic, names = f"MoreQuestions_{asker}", node.names

    async def java_asks() -> None:
        async with PushConsumer("MoreAnswerers", nameservers=names, start="first") as consumer:

            @consumer.on(topic)
            async def answer(message: StoredMessage) -> None:
                await consumer.reply(message, b"re:" + message.body, properties={"kind": "ours"})

            await driver.ask("producer.start", name="asks", group="MoreAskers", namesrv=names)
            answered = await driver.ask(
                "producer.request", name="asks", topic=topic, body=b"who?", timeoutMs=PATIENT_MS
            )
            assert answered["reply"]["body"] == b"re:who?"
            assert answered["reply"]["properties"]["kind"] == "ours"

    async def ours_asks() -> None:
        await send(names, topic, b"makes the topic")
        await driver.ask("producer.start", name="says", group="MoreSayers", namesrv=names)
        listens: dict[str, Any] = {
            "group": "MoreListeners",
            "namesrv": names,
            "topic": topic,
            "from": "last",
        }
        await driver.ask("consumer.start", name="listens", reply="says", **listens)

        # Java looks up where queues end some time after its start: what is sent before is skipped.
        async def holds_all() -> bool:
            return await queues_held(driver, "listens", topic) == 4

        await until(holds_all)
        async with Producer("MoreAskers2", nameservers=names) as producer:
            reply = await producer.request(Message(topic, b"who?"), timeout_ms=PATIENT_MS)
            assert reply.body == b"re:who?"
        await driver.ask("consumer.stop", name="listens")

    run(java_asks() if asker == "java" else ours_asks())


def test_ours_ask_and_answer_through_javas_broker(java_names: str) -> None:
    topic = "MoreQuestions"

    async def test() -> None:
        await send(java_names, topic, b"makes the topic")
        async with (
            Producer("askers", nameservers=java_names) as producer,
            PushConsumer("answerers", nameservers=java_names, start="first") as consumer,
        ):

            @consumer.on(topic)
            async def answer(message: StoredMessage) -> None:
                if message.body != b"makes the topic":
                    await consumer.reply(message, b"re:" + message.body)

            questions = [Message(topic, b"q%d" % number) for number in range(10)]
            replies = await asyncio.gather(
                *(producer.request(question, timeout_ms=PATIENT_MS) for question in questions)
            )
            assert [reply.body for reply in replies] == [b"re:" + q.body for q in questions]

    run(test())


async def polled(reader: LitePullConsumer) -> StoredMessage:
    """The next message, however long it takes."""
    while not (found := await reader.poll()):
        pass
    return found[0]


def test_lite_pull_reads_seeks_and_commits_at_javas_broker(java_names: str) -> None:
    topic, group = "MoreLite", "G_MoreLite"

    def consumer() -> LitePullConsumer:
        config = LitePullConfig(auto_commit=False)
        return LitePullConsumer(group, nameservers=java_names, start="first", config=config)

    async def test() -> None:
        await send(java_names, topic, *(b"%d" % number for number in range(40)))
        got: list[StoredMessage] = []
        async with consumer() as reader:
            reader.subscribe(topic)
            while len(got) < 40:
                got += await reader.poll(timeout_ms=10_000)
            queue = got[0].queue
            count = sum(message.queue == queue for message in got)
            await reader.commit()
            assert await reader.committed(queue) == count
            await reader.seek(queue, count - 2)
            again: list[StoredMessage] = []
            while len(again) < 2:
                again += await reader.poll()
            assert [m.queue_offset for m in again] == [count - 2, count - 1]
            await reader.seek_to_begin(queue)
            assert (await polled(reader)).queue_offset == 0
        async with consumer() as reader:
            reader.assign([queue])
            assert await reader.position(queue) == count
            await reader.seek_to_time(queue, got[0].stored_ms)
            assert (await polled(reader)).queue == queue

    run(test())


def test_lite_pull_shares_queues_with_a_java_member(driver: JavaDriver, node: SprocketNode) -> None:
    topic, group, names = "MoreShared", "G_MoreShared", node.names

    async def test() -> None:
        await send(names, topic, *(b"%d" % number for number in range(8)))
        config = LitePullConfig(rebalance_ms=1000)
        async with LitePullConsumer(
            group, nameservers=names, start="first", config=config
        ) as reader:
            reader.subscribe(topic)
            await until(lambda: len(reader.assignment) == 4)
            await driver.ask("lite.start", group=group, namesrv=names, topic=topic)
            await until(lambda: len(reader.assignment) == 2)
            mine = {queue.number for queue in reader.assignment}
            theirs: set[int] = set()
            while len(theirs) != 2:
                await driver.ask("lite.poll", timeoutMs=200)
                assigned = (await driver.ask("lite.assignment"))["queues"]
                theirs = {queue["queueId"] for queue in assigned}
            assert mine | theirs == {0, 1, 2, 3}
            await driver.ask("lite.stop")
            await until(lambda: len(reader.assignment) == 4)

    run(test())
