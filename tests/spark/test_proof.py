"""What a query goes through: brokers restart, messages go and come, and every row is there once.

The reader is driven as Spark drives it, without Spark.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, StreamOptions, read_options
from sprocket.spark.reading.read import RocketMQReader
from sprocket.spark.reading.stream_reader import RocketMQStreamReader
from sprocket.spark.records.schema import arrow_schema
from tests.spark.node import Node
from tests.spark.support import FakeBroker, Shelf, record, serving

SCHEMA = arrow_schema(
    [
        ("topic", "string", True),
        ("queue_id", "int", True),
        ("queue_offset", "bigint", True),
        ("body", "binary", True),
    ]
)
Row = dict[str, Any]


class Query:
    """A streaming query: a checkpoint, and the rows that were written out."""

    def __init__(self, names: str, **given: str) -> None:
        options = {"namesrvAddr": names, "routeRefreshMs": "0", "startingOffsets": "earliest"}
        self._options = read_options({**options, **given}, StreamOptions)
        self.rows: list[Row] = []
        self.start: Any = None
        self.restart()

    def restart(self) -> None:
        """Begins again from its checkpoint."""
        self._reader = RocketMQStreamReader(self._options, SCHEMA)
        if self.start is None:
            self.start = self._reader.initialOffset()

    def batch(self, records_max: int | None = None, *, sink_fails: bool = False) -> int:
        """One micro-batch; how many rows it had."""
        limit = ReadAllAvailable() if records_max is None else ReadMaxRows(records_max)
        end = self._reader.latestOffset(self.start, limit)
        if end == self.start:
            return 0
        found = []
        for partition in self._reader.partitions(self.start, end):
            there, part = pickle.loads(pickle.dumps((self._task_reader(), partition)))
            found += [row for batch in there.read(part) for row in batch.to_pylist()]
        if sink_fails:
            raise OSError("the sink is full")
        self.rows += found
        # Spark tells of a batch only when it makes the next.
        self.start = end
        return len(found)

    def available_now(self, records_max: int) -> None:
        """Everything that is there now, and no more."""
        self._reader.prepareForTriggerAvailableNow()
        while self.batch(records_max):
            pass

    def _task_reader(self) -> RocketMQStreamReader:
        return RocketMQStreamReader(self._options, SCHEMA)


def bodies(rows: list[Row]) -> list[bytes]:
    return sorted(row["body"] for row in rows)


def committed(names: str, group: str, topic: str) -> int:
    with ConnectionPool([names]) as wires:
        cluster = ClusterMetadata(wires)
        return sum(cluster.committed(group, cluster.readable(topic)).values())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path / "store") as node:
        yield node


def test_a_broker_may_restart_during_a_query(node: Node) -> None:
    sent = [b"order %05d" % n for n in range(2000)]
    node.send("orders", sent[:1000])
    patient = {"fetchOffset.numRetries": "1000"}
    query = Query(node.names, subscribe="orders", **patient)
    assert 0 < query.batch(700) <= 700

    def restart() -> None:
        time.sleep(0.2)
        node.start()

    node.stop()
    back = threading.Thread(target=restart, daemon=True)
    back.start()
    while len(query.rows) < 1000:
        query.batch(700)
    back.join()
    node.send("orders", sent[1000:])
    query.restart()
    while len(query.rows) < 2000:
        query.batch(700)
    assert bodies(query.rows) == sent


def test_a_query_that_ends_has_told_its_group_all_of_it(node: Node) -> None:
    node.send("orders", (b"%d" % n for n in range(250)))
    query = Query(node.names, subscribe="orders", group="archive")
    query.available_now(100)
    assert len(query.rows) == 250
    assert committed(node.names, "archive", "orders") == 250
    again = Query(node.names, subscribe="orders", group="archive", startingOffsets="committed")
    assert again.batch() == 0
    node.send("orders", [b"late"])
    assert again.batch() == 1


def test_what_a_sink_did_not_take_is_neither_lost_nor_committed(node: Node) -> None:
    node.send("orders", (b"%d" % n for n in range(90)))
    query = Query(node.names, subscribe="orders", group="archive")
    assert query.batch(30) == 30
    assert query.batch(30) == 30
    with pytest.raises(OSError, match="the sink is full"):
        query.batch(30, sink_fails=True)
    assert committed(node.names, "archive", "orders") == 60
    # Without its checkpoint it begins where the group is.
    fresh = Query(node.names, subscribe="orders", group="archive", startingOffsets="committed")
    assert fresh.batch() == 30
    # With it, it goes on: exactly once.
    query.restart()
    assert query.batch(30) == 30
    assert bodies(query.rows) == sorted(b"%d" % n for n in range(90))


def test_topics_appear_grow_and_stay_empty_while_a_query_runs(node: Node) -> None:
    node.send("shop-a", [b"a1"])
    query = Query(node.names, subscribePattern="shop-.*")
    assert query.batch() == 1
    node.send("shop-b", [b"b1", b"b2"])
    node.send("other", [b"x"])
    node.send("shop-a", [b"a2"])
    while query.batch():
        pass
    assert bodies(query.rows) == [b"a1", b"a2", b"b1", b"b2"]
    assert query.batch() == 0


def test_large_bodies_come_whole(node: Node) -> None:
    from sprocket.client.blocking import Producer
    from sprocket.client.config import ProducerConfig
    from sprocket.message.message import Message

    plain = ProducerConfig(compression="none")
    noise = [bytes([n]) * (4 << 20) for n in range(3)]
    with Producer("p", nameservers=node.names, config=plain) as producer:
        for body in noise:
            producer.send(Message("large", body))
    with Producer("q", nameservers=node.names) as producer:
        producer.send(Message("large", b"pressed" * 500_000))
    options = read_options({"namesrvAddr": node.names, "subscribe": "large"}, BatchOptions)
    reader = RocketMQReader(options, SCHEMA)
    found = [
        row["body"]
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    assert sorted(found) == sorted([*noise, b"pressed" * 500_000])


A0 = QueueId("orders", "broker-a", 0)
B0 = QueueId("orders", "broker-b", 0)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {
        queue: Shelf([record(n, body=f"{queue.broker} {n}".encode()) for n in range(100)])
        for queue in (A0, B0)
    }
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def forget(shelf: Shelf, before: int) -> None:
    """Retention: the first messages go."""
    shelf.records = shelf.records[before - shelf.first :]
    shelf.first = before


def test_retention_during_a_query_fails_it_and_says_where(broker: FakeBroker) -> None:
    query = Query(broker.address, subscribe="orders")
    assert query.batch(40) == 40
    forget(broker.shelves[A0], 70)
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0: offsets \[20, 70\) are gone"):
        query.batch()


def test_or_it_goes_on_without_what_is_gone(broker: FakeBroker) -> None:
    query = Query(broker.address, subscribe="orders", failOnDataLoss="false")
    assert query.batch(40) == 40
    forget(broker.shelves[A0], 70)
    while query.batch(40):
        pass
    kept = [*range(20), *range(70, 100)]
    assert sorted(row["queue_offset"] for row in query.rows) == sorted([*kept, *range(100)])


def test_queues_with_the_same_number_of_two_brokers_are_two_queues(broker: FakeBroker) -> None:
    query = Query(broker.address, subscribe="orders")
    while query.batch(33):
        pass
    assert bodies(query.rows) == sorted(
        f"broker-{name} {n}".encode() for name in "ab" for n in range(100)
    )


def test_a_huge_queue_beside_empty_ones_is_shared_among_tasks(broker: FakeBroker) -> None:
    broker.shelves[A0] = Shelf([record(n) for n in range(1000)])
    broker.shelves[B0] = Shelf()
    options = {"namesrvAddr": broker.address, "subscribe": "orders", "minPartitions": "8"}
    reader = RocketMQReader(read_options(options, BatchOptions), SCHEMA)
    sizes = [sum(one.records for one in part.share) for part in reader.partitions()]
    assert sizes == [125] * 8
