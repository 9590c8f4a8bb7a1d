from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.protocol.command import Reply
from sprocket.protocol.requests.send import SendBatch
from tests.spark.support import FakeBroker, Shelf, record, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {QueueId("copies", "broker-a", number): Shelf() for number in range(2)}
    shelves[QueueId("orders", "broker-a", 0)] = Shelf([record(offset) for offset in range(50)])
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def write(frame: DataFrame, broker: FakeBroker, **options: str) -> None:
    writer: Any = frame.write.format("rocketmq").mode("append")
    writer.option("namesrvAddr", broker.address).options(**options).save()


def copies(broker: FakeBroker) -> list[StoredMessage]:
    return [
        message
        for queue, shelf in broker.shelves.items()
        for raw in shelf.records
        if queue.topic == "copies" and raw is not None
        for message in scan(raw)
    ]


def test_rows_become_messages(spark: SparkSession, broker: FakeBroker) -> None:
    frame = spark.range(200).selectExpr(
        "cast(id as string) body", "concat('k', id) key", "map('n', cast(id as string)) properties"
    )
    write(frame.repartition(2), broker, topic="copies", tag="new", idempotencyProperty="row")
    found = copies(broker)
    assert {m.body for m in found} == {str(n).encode() for n in range(200)}
    assert all(m.tag == "new" and m.properties["n"] == m.body.decode() for m in found)
    assert len({m.properties["row"] for m in found}) == 200


def test_what_cannot_be_written_is_said(spark: SparkSession, broker: FakeBroker) -> None:
    frame = spark.range(3).selectExpr("cast(id as string) body")
    with pytest.raises(Exception, match="Give option topic, or a column topic"):
        write(frame, broker)
    broker.fault = lambda request: (
        Reply(code=13, remark="no more") if request.code in (310, SendBatch.code) else None
    )
    with pytest.raises(Exception, match=r"copies@broker-a:\d: .* no more"):
        write(frame, broker, topic="copies")


def test_a_stream_is_copied_to_another_topic(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")
    reader: Any = spark.readStream.format("rocketmq").option("namesrvAddr", broker.address)
    orders = reader.options(subscribe="orders", startingOffsets="earliest").load()
    writer: Any = orders.select("key", "tag", "body", "properties").writeStream.format("rocketmq")
    query = (
        writer.options(namesrvAddr=broker.address, topic="copies", idempotencyProperty="row")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(600)
    found = copies(broker)
    assert len(found) == 50
    assert {m.tag for m in found} == {"paid"}
    assert all(m.properties["row"].startswith(f"{query.id}-0-") for m in found)
