"""Bodies with a schema through Spark: decoded into columns, and encoded from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("fastavro")

from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.framing import join
from tests.schemas.parts import AVRO_ORDER, ORDER, order_set
from tests.spark.support import FakeBroker, Shelf, record, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    order = AvroBodies(AVRO_ORDER).encode(ORDER)
    shelves = {
        QueueId("avro", "broker-a", 0): Shelf(
            [
                record(0, body=join(1, order)),
                record(1, body=b"plain"),
                record(2, body=join(1, order)),
            ]
        ),
        QueueId("copies", "broker-a", 0): Shelf(),
    }
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def test_a_topic_of_avro_is_a_table_and_goes_back_as_protobuf(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    (tmp_path / "1.avsc").write_text(AVRO_ORDER)
    (tmp_path / "order.desc").write_bytes(order_set())
    given = {
        "namesrvAddr": broker.address, "subscribe": "avro", "bodyFormat": "avro",
        "schemaRegistry": str(tmp_path), "schemaSubject": "1", "cloudEvents": "true",
    }  # fmt: skip
    frame: Any = spark.read.format("rocketmq").options(**given).load()
    rows = frame.orderBy("queue_offset").collect()
    assert rows[0].value.asDict() == ORDER
    assert (rows[1].value, rows[1].body, rows[1].event) == (None, b"plain", None)
    assert "byte 112" in rows[1].value_error
    sums = frame.groupBy("value.state").sum("value.amount").collect()
    assert {(row[0], row[1]) for row in sums} == {("PAID", 5.0), (None, None)}

    back = frame.where("value is not null").selectExpr(
        "struct(value.id as id, value.tags as tags, value.state as state, "
        "map('n', 7) as counts, timestamp_seconds(1) as at) as value"
    )
    writer = back.write.format("rocketmq").mode("append")
    writer.options(
        namesrvAddr=broker.address, topic="copies", bodyFormat="protobuf",
        bodySchema=str(tmp_path / "order.desc"), bodyMessage="shop.Order",
    ).save()  # fmt: skip
    copies: Any = spark.read.format("rocketmq").options(
        namesrvAddr=broker.address, subscribe="copies", bodyFormat="protobuf",
        bodySchema=str(tmp_path / "order.desc"), bodyMessage="shop.Order",
    )  # fmt: skip
    kept = copies.load().selectExpr("value.id", "value.counts.n", "value.at", "value_error")
    assert {(row[0], row[1], row[3]) for row in kept.collect()} == {("o-1", 7, None)}
    shelf = broker.shelves[QueueId("copies", "broker-a", 0)]
    assert sum(len(list(scan(raw))) for raw in shelf.records if raw is not None) == 2
