from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.message.queue import QueueId
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.reading.read import RocketMQReader
from sprocket.spark.records.schema import arrow_schema
from tests.spark.support import FakeBroker, Shelf, record, serving

QUEUES = [QueueId("orders", name, number) for name in ("broker-a", "broker-b") for number in (0, 1)]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {
        queue: Shelf([record(offset, body=str(queue).encode()) for offset in range(100)])
        for queue in QUEUES
    }
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def reader(broker: FakeBroker, **given: str) -> RocketMQReader:
    options = {"namesrvAddr": broker.address, "subscribe": "orders", **given}
    wanted = [("broker", "string", True), ("queue_id", "int", True)]
    schema = arrow_schema([*wanted, ("queue_offset", "bigint", True), ("body", "binary", True)])
    return RocketMQReader(read_options(options, BatchOptions), schema)


def rows(made: RocketMQReader) -> list[dict[str, object]]:
    """All rows, each partition read by a copy that has travelled."""
    found = []
    for partition in made.partitions():
        there, part = pickle.loads(pickle.dumps((made, partition)))
        found += [row for batch in there.read(part) for row in batch.to_pylist()]
    return found


@pytest.mark.parametrize("parts", ["1", "3", "50"])
def test_every_message_is_one_row_however_the_work_is_shared(
    broker: FakeBroker, parts: str
) -> None:
    found = rows(reader(broker, minPartitions=parts))
    places = [(row["broker"], row["queue_id"], row["queue_offset"]) for row in found]
    assert places == [(q.broker, q.number, offset) for q in QUEUES for offset in range(100)]
    assert all(row["body"] == f"orders@{row['broker']}:{row['queue_id']}".encode() for row in found)


def test_reading_a_partition_twice_gives_the_same(broker: FakeBroker) -> None:
    made = reader(broker, minPartitions="3")
    partition = made.partitions()[1]
    first = [batch.to_pylist() for batch in made.read(partition)]
    broker.count_max = 7
    broker.shelves[QUEUES[0]].records.append(record(100))
    again = [row for batch in made.read(partition) for row in batch.to_pylist()]
    assert again == [row for some in first for row in some]


def test_nothing_to_read_is_one_partition_without_rows(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="latest")
    assert len(made.partitions()) == 1
    assert rows(made) == []


def test_a_gap_among_the_messages_is_loss(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.shelves[QUEUES[2]].records[50] = None
    with pytest.raises(ReadFailed, match=r"orders@broker-b:0: 1 messages are gone in .*\[0, 100\)"):
        rows(reader(broker))
    assert len(rows(reader(broker, failOnDataLoss="false"))) == 399
    assert "1 messages are gone" in caplog.text


def test_messages_deleted_between_planning_and_reading_are_loss(broker: FakeBroker) -> None:
    made = reader(broker)
    (partition,) = made.partitions()
    shelf = broker.shelves[QUEUES[1]]
    shelf.records, shelf.first = shelf.records[30:], 30
    with pytest.raises(ReadFailed, match=r"orders@broker-a:1: offsets \[0, 30\) are gone"):
        list(made.read(partition))


def test_bytes_that_are_no_records_name_the_place(broker: FakeBroker) -> None:
    broker.shelves[QUEUES[1]].records[40] = b"\0\0\0\x7bnonsense"
    with pytest.raises(ReadFailed, match=r"orders@broker-a:1 from offset \d+: "):
        rows(reader(broker))
