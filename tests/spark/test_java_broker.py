"""Reading and writing as Spark's tasks do it, against a broker of Java's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.client.blocking import Producer
from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import StreamOffsets
from sprocket.spark.options.options import BatchOptions, StoreOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import write_options
from sprocket.spark.reading.read import RocketMQReader
from sprocket.spark.reading.stream import StreamPlan
from sprocket.spark.records.schema import arrow_schema
from sprocket.spark.store_files.read import StoreReader
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.send import Sender
from tests.compat.javaland import JavaBroker, JavaNameServer, mqadmin, require_java, wait_until

pytestmark = pytest.mark.java

COLUMNS = ("queue_id int", "queue_offset bigint", "key string", "tag string", "body binary")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    require_java()
    work = tmp_path_factory.mktemp("spark")
    with (
        JavaNameServer(work) as servers,
        JavaBroker(work, servers.address, name="broker-a") as broker,
    ):
        for topic in ("orders", "copies"):
            mqadmin(
                "updateTopic", "-t", topic, "-c", "DefaultCluster", "-r", "4", "-w", "4",
                namesrv=servers.address,
            )  # fmt: skip
        yield broker


@pytest.fixture
def names(broker: JavaBroker) -> str:
    return broker.name_servers[0]


def rows(names: str, topic: str, **given: str) -> list[dict[str, Any]]:
    options = read_options({"namesrvAddr": names, "subscribe": topic, **given}, BatchOptions)
    fields = [(*column.split(" "), True) for column in COLUMNS]
    reader = RocketMQReader(options, arrow_schema(fields))  # type: ignore[arg-type]
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("is_judged_there", [True, False])
def test_conditions_are_judged_by_the_broker_or_here_alike(
    broker: JavaBroker, names: str, is_judged_there: bool
) -> None:
    topic = f"judged-{is_judged_there}"
    settings = f"enablePropertyFilter={str(is_judged_there).lower()}"
    key, _, value = settings.partition("=")
    mqadmin("updateBrokerConfig", "-b", broker.address, "-k", key, "-v", value, namesrv=names)
    with Producer("p", nameservers=names) as producer:
        for number in range(60):
            some = {"amount": str(number)} if number % 3 else {"region": "eu"}
            producer.send(Message(topic, b"%d" % number, tag="new", properties=some))
    wait_until(lambda: len(rows(names, topic)) == 60)
    found = rows(names, topic, sql="amount > 30 AND TAGS = 'new'")
    assert {int(row["body"]) for row in found} == {n for n in range(31, 60) if n % 3}
    assert len(rows(names, topic, sql="region IS NOT NULL")) == 20


def test_what_is_sent_is_read_exactly_filtered_and_followed(names: str) -> None:
    with Producer("p", nameservers=names) as producer:
        for number in range(300):
            body = b"x" * 20_000 if number == 7 else b"order %d" % number
            tag = "paid" if number % 3 else "new"
            producer.send(Message("orders", body, tag=tag, keys=[f"k{number}"]))
    wait_until(
        lambda: len(rows(names, "orders")) == 300
    )  # it acknowledges before its queues show it
    found = rows(names, "orders", minPartitions="3")
    assert sorted(row["key"] for row in found) == sorted(f"k{n}" for n in range(300))
    assert {len(row["body"]) for row in found if row["key"] == "k7"} == {20_000}
    assert len(rows(names, "orders", tags="paid")) == 200
    assert rows(names, "orders", startingTimestamp=str(int(time.time() * 1000) + 60_000)) == []

    made = StreamPlan(
        read_options(
            {"namesrvAddr": names, "subscribe": "orders", "group": "lag-watchers"}, StreamOptions
        )
    )
    start = StreamOffsets({QueueId("orders", "broker-a", number): 0 for number in range(4)})
    end = made.next(start, 100)
    assert sum(end.next.values()) == 100
    # Records have some 200 bytes; one of 20,000 may be in the sample.
    assert 4 <= sum(made.next(start, None, 20 * 1024).next.values()) <= 120
    # A message that was read recognises its queue at Java's brokers, too.
    assert end.witnesses
    assert made.next(end, None).anew == {}
    made.done(end)
    made.close()


def test_what_tasks_write_is_stored_and_acknowledged(names: str) -> None:
    some = [
        OutgoingMessage(Message("copies", b"copy %d" % n, tag="new", keys=[f"c{n}"]), None, None)
        for n in range(500)
    ]
    with Sender(write_options({"namesrvAddr": names, "batchMaxRecords": "64"})) as sender:
        sender.send(some)
        sender.finish()
        assert sender.acknowledged == 500
    wait_until(lambda: len(rows(names, "copies")) >= 500)
    assert {row["body"] for row in rows(names, "copies")} == {b"copy %d" % n for n in range(500)}


def test_the_files_of_a_broker_that_runs_are_a_table(broker: JavaBroker, names: str) -> None:
    with Producer("p", nameservers=names) as producer:
        for number in range(200):
            producer.send(Message("filed", b"file %d" % number, tag="new", keys=[f"f{number}"]))
    wait_until(lambda: len(rows(names, "filed")) == 200)
    served = sorted((r["queue_id"], r["queue_offset"], r["body"]) for r in rows(names, "filed"))
    fields = [(*column.split(" "), True) for column in COLUMNS]
    for given in ({}, {"subscribe": "filed"}, {"subscribe": "filed", "tags": "new || old"}):
        options = read_options({"store": str(broker.store), **given}, StoreOptions)
        reader = StoreReader(options, arrow_schema([("topic", "string", True), *fields]))  # type: ignore[list-item]
        found = [
            (row["queue_id"], row["queue_offset"], row["body"])
            for partition in reader.partitions()
            for batch in reader.read(partition)
            for row in batch.to_pylist()
            if row["topic"] == "filed"
        ]
        assert sorted(found) == served


def test_a_broker_may_restart_during_a_read(broker: JavaBroker, names: str) -> None:
    with Producer("p", nameservers=names) as producer:
        for number in range(400):
            producer.send(Message("restarted", b"%d" % number))
    wait_until(lambda: len(rows(names, "restarted")) == 400)
    given = {"namesrvAddr": names, "subscribe": "restarted", "pullTimeoutMs": "600000"}
    options = read_options(given, BatchOptions)
    reader = RocketMQReader(options, arrow_schema([("body", "binary", True)]))
    partitions = reader.partitions()
    broker.kill()
    back = threading.Thread(target=broker.start, daemon=True)
    back.start()
    found = [
        row["body"]
        for partition in partitions
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    back.join()
    assert sorted(map(int, found)) == list(range(400))
