"""Brokers that check who asks, Java's and ours: clients, admin, Spark, with keys and wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.admin import messages, topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import NoPermission
from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.spark.options.checkpoint import StreamOffsets
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import WriteOptions, write_options
from sprocket.spark.reading.read import RocketMQReader
from sprocket.spark.reading.stream import StreamPlan
from sprocket.spark.records.schema import arrow_schema
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.send import Sender
from tests.compat.javaland import JavaBroker, JavaNameServer, require_java, wait_until
from tests.compat.sprocketland import SprocketNode
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java

PROVIDERS = "org.apache.rocketmq.auth.authentication.provider."
KEYS = {"access_key": "robot", "secret_key": "keepItQuiet"}
SETTINGS = {
    "authenticationEnabled": True,
    "authenticationProvider": f"{PROVIDERS}DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDERS}LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": '{"username":"robot","password":"keepItQuiet"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"robot","secretKey":"keepItQuiet"}',
}
OURS = {
    "broker.authentication": True,
    "broker.authorization": True,
    "broker.first_user": SETTINGS["initAuthenticationUser"],
}
SPARK_KEYS = {"accessKey": "robot", "secretKey": "keepItQuiet"}


@pytest.fixture(scope="module", params=["java", "sprocket"])
def names(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    work = tmp_path_factory.mktemp("access")
    if request.param == "sprocket":
        with SprocketNode(work, settings=OURS) as node:
            yield node.names
        return
    require_java()
    with (
        JavaNameServer(work) as servers,
        JavaBroker(work, servers.address, settings=SETTINGS),
    ):
        yield servers.address


def rows(names: str, topic: str, **given: str) -> list[dict[str, Any]]:
    options = read_options({"namesrvAddr": names, "subscribe": topic, **given}, BatchOptions)
    reader = RocketMQReader(options, arrow_schema([("body", "binary", True)]))
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def write(options: WriteOptions, some: list[OutgoingMessage]) -> None:
    with Sender(options) as sender:
        sender.send(some)
        sender.finish()


def test_clients_and_admin_with_keys_are_let_in(names: str) -> None:
    config = ProducerConfig(**KEYS)
    with blocking.Producer("p", nameservers=names, config=config) as producer:
        sent = producer.send(Message("orders", b"x" * 10_000, tag="paid", keys=["k1"]))

    async def consume() -> list[StoredMessage]:
        config = ConsumerConfig(**KEYS)
        found = []
        consumer = PushConsumer("c", nameservers=names, start="first", config=config)
        async with consumer:
            consumer.subscribe("orders", tags="paid")
            async for message in consumer:
                found.append(message)
                break
        return found

    assert [one.body for one in run(consume())] == [b"x" * 10_000]

    async def administer() -> tuple[list[str], list[StoredMessage]]:
        async with Pool(signer=Signer("robot", "keepItQuiet")) as pool:
            caller = Caller(pool, [names], timeout_ms=PATIENT_MS)
            made = await topics.names(caller)
            return made, await messages.by_unique_id(caller, "orders", sent.message_id)

    made, found = run(administer())
    assert "orders" in made
    assert [one.keys for one in found] == [["k1"]]


@pytest.mark.parametrize("keys", [{}, {"access_key": "robot", "secret_key": "guessed"}])
def test_others_are_told_that_they_may_not(names: str, keys: dict[str, Any]) -> None:
    config = ProducerConfig(**keys)
    with (
        blocking.Producer("p", nameservers=names, config=config) as producer,
        pytest.raises(NoPermission),
    ):
        producer.send(Message("orders", b"x"))
    given = {"accessKey": keys["access_key"], "secretKey": keys["secret_key"]} if keys else {}
    with pytest.raises(NoPermission):
        rows(names, "orders", **given)
    options = write_options({"namesrvAddr": names, "topic": "copies", "sendRetries": "0", **given})
    with pytest.raises(WriteFailed, match=r"copies@broker-a:\d: 1 messages"):
        write(options, [OutgoingMessage(Message("copies", b"x"), None, None)])


def test_spark_with_keys_writes_reads_and_commits(names: str) -> None:
    some = [OutgoingMessage(Message("copies", b"copy %d" % n), None, None) for n in range(100)]
    write(write_options({"namesrvAddr": names, **SPARK_KEYS}), some)
    wait_until(lambda: len(rows(names, "copies", **SPARK_KEYS)) == 100)
    begin = {"namesrvAddr": names, "subscribe": "copies", "group": "archive", **SPARK_KEYS}
    plan = StreamPlan(read_options(begin, StreamOptions))
    start = StreamOffsets(dict.fromkeys(plan.initial().next, 0))
    end = plan.next(start, None)
    # Java's brokers know a group from its first pull.
    assert len(rows(names, "copies", group="archive", **SPARK_KEYS)) == 100
    plan.done(end)
    plan.close()
    assert sum(end.next.values()) == 100
    assert rows(names, "copies", group="archive", startingOffsets="committed", **SPARK_KEYS) == []


def test_a_task_whose_keys_are_wrong_says_topic_queue_and_offset(names: str) -> None:
    given = {"namesrvAddr": names, "subscribe": "copies"}
    schema = arrow_schema([("body", "binary", True)])
    partition = RocketMQReader(
        read_options({**given, **SPARK_KEYS}, BatchOptions), schema
    ).partitions()[0]
    wrong = RocketMQReader(
        read_options({**given, "accessKey": "a", "secretKey": "b"}, BatchOptions), schema
    )
    queue: QueueId = partition.share[0].queue
    with pytest.raises(ReadFailed, match=rf"{queue} at offset 0: "):
        list(wrong.read(partition))
