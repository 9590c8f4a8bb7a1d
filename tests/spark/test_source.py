from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sprocket.message.compression import Compression, compress
from sprocket.message.queue import QueueId
from tests.spark.stores import Store
from tests.spark.support import BORN_MS, FakeBroker, Shelf, record, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

REGIONS = ("eu", "us", "asia")


def shelf(broker: str, number: int, count: int) -> Shelf:
    return Shelf(
        [
            record(
                offset,
                body=f"{broker}-{number}-{offset}".encode(),
                properties=f"KEYS\x01k{offset}\x02TAGS\x01{'paid' if offset % 2 else 'new'}\x02"
                f"region\x01{REGIONS[offset % 3]}\x02UNIQ_KEY\x01ID{offset}\x02".encode(),
                queue_number=number,
            )
            for offset in range(count)
        ]
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[FakeBroker]:
    shelves = {
        QueueId("orders", "broker-a", 0): shelf("broker-a", 0, 300),
        QueueId("orders", "broker-a", 1): shelf("broker-a", 1, 0),
        QueueId("orders", "broker-b", 0): shelf("broker-b", 0, 30),
        QueueId("returns", "broker-b", 0): shelf("broker-b", 0, 5),
        QueueId("odd", "broker-a", 0): Shelf(
            [
                record(0, body=compress(b"z" * 100, Compression.ZLIB), sys_flag=0x301),
                record(1, body=bytes(range(256)), properties=b"bent\x01\xff\x02\x02"),
            ]
        ),
    }
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def read(spark: SparkSession, broker: FakeBroker, *, schema: str = "", **options: str) -> DataFrame:
    reader: Any = spark.read.format("rocketmq").option("namesrvAddr", broker.address)
    if schema:
        reader = reader.schema(schema)
    loaded: DataFrame = reader.options(**options).load()
    return loaded


def test_a_topic_is_a_table(spark: SparkSession, broker: FakeBroker) -> None:
    frame = read(spark, broker, subscribe="orders", minPartitions="3")
    assert frame.count() == 330
    row = frame.where("broker = 'broker-b' and queue_offset = 7").collect()[0]
    assert row.asDict() == {
        "topic": "orders",
        "broker": "broker-b",
        "queue_id": 0,
        "queue_offset": 7,
        "key": "k7",
        "tag": "paid",
        "body": b"broker-b-0-7",
        "properties": {"KEYS": "k7", "TAGS": "paid", "region": "us", "UNIQ_KEY": "ID7"},
        "born_timestamp": naive(BORN_MS + 7),
        "store_timestamp": naive(BORN_MS + 1007),
        "message_id": "ID7",
    }


def naive(ms: int) -> datetime.datetime:
    """As Spark shows a time to Python: in this machine's zone, without saying so."""
    return datetime.datetime.fromtimestamp(ms / 1000)


def test_it_can_be_asked_in_sql(spark: SparkSession, broker: FakeBroker) -> None:
    read(spark, broker, subscribe="orders,returns").createOrReplaceTempView("messages")
    found = spark.sql(
        "select topic, properties['region'] region, count(*) n from messages "
        "where tag = 'paid' group by all order by all"
    ).collect()
    assert [tuple(row) for row in found] == [
        ("orders", "asia", 55),
        ("orders", "eu", 55),
        ("orders", "us", 55),
        ("returns", "eu", 1),
        ("returns", "us", 1),
    ]


def test_a_schema_prunes_and_may_want_the_body_as_text(
    spark: SparkSession, broker: FakeBroker
) -> None:
    schema = "body string, offset_id string, queue_offset bigint"
    frame = read(spark, broker, schema=schema, subscribe="returns")
    assert frame.columns == ["body", "offset_id", "queue_offset"]
    row = frame.where("queue_offset = 4").collect()[0]
    assert tuple(row) == ("broker-b-0-4", "7F00000100002A9F0000000000000190", 4)


def test_odd_messages_are_rows_like_others(spark: SparkSession, broker: FakeBroker) -> None:
    rows = read(spark, broker, subscribe="odd").orderBy("queue_offset").collect()
    assert [bytes(row.body) for row in rows] == [b"z" * 100, bytes(range(256))]
    assert rows[1].properties == {"bent": "\ufffd"}


def test_tags_are_filtered(spark: SparkSession, broker: FakeBroker) -> None:
    frame = read(spark, broker, subscribe="orders", tags="paid || other")
    assert frame.select("tag").distinct().collect() == [("paid",)]
    assert frame.count() == 165


def test_properties_may_be_left_out(spark: SparkSession, broker: FakeBroker) -> None:
    frame = read(spark, broker, subscribe="returns", includeHeaders="false")
    assert "properties" not in frame.columns
    assert frame.count() == 5


def test_nothing_to_read_is_no_rows(spark: SparkSession, broker: FakeBroker) -> None:
    assert read(spark, broker, subscribe="orders", startingOffsets="latest").collect() == []


def test_a_wrong_option_is_told_with_the_right_one(spark: SparkSession, broker: FakeBroker) -> None:
    with pytest.raises(Exception, match=r"no option startingoffset: did you mean startingOffsets"):
        read(spark, broker, subscribe="orders", startingOffset="latest")
    with pytest.raises(Exception, match=r"no column value: did you mean body"):
        read(spark, broker, subscribe="orders", schema="value binary").count()


def test_a_failed_task_says_topic_queue_and_offset(spark: SparkSession, broker: FakeBroker) -> None:
    end = '{"returns": {"broker-b": {"0": 9}}}'
    frame = read(spark, broker, subscribe="returns", endingOffsets=end, pullTimeoutMs="50")
    with pytest.raises(Exception, match=r"returns@broker-b:0 at offset 5, of .*\[0, 9\)"):
        frame.count()


def test_conditions_are_pushed_down(spark: SparkSession, broker: FakeBroker) -> None:
    pytest.importorskip("pyspark.sql.worker.data_source_pushdown_filters")

    def narrowed() -> DataFrame:
        return read(spark, broker, subscribe="orders,returns", pushDownPredicate="true")

    broker.pulls.clear()
    found = narrowed().where(
        "topic = 'orders' and broker = 'broker-a' and queue_id = 0 and queue_offset >= 100 "
        "and queue_offset < 200 and tag = 'paid' and store_timestamp >= timestamp '2023-01-01'"
    )
    assert [row.queue_offset for row in found.orderBy("queue_offset").collect()] == list(
        range(101, 200, 2)
    )
    places = {(pull.topic, pull.bname, pull.queue_id) for pull in broker.pulls}
    assert places == {("orders", "broker-a", 0)}
    assert min(pull.queue_offset for pull in broker.pulls) == 100
    assert {pull.subscription for pull in broker.pulls} == {"paid"}
    assert narrowed().where("topic = 'nothing'").count() == 0
    assert narrowed().where("queue_offset = 3 or tag = 'new'").count() == 171


def test_a_table_may_be_asked_again_where_conditions_stay_with_spark(
    spark: SparkSession, broker: FakeBroker
) -> None:
    frame = read(spark, broker, subscribe="orders,returns")
    assert frame.where("topic = 'returns'").count() == 5
    assert frame.where("queue_offset < 3").count() == 9
    assert frame.count() == 335


def test_a_condition_is_judged_by_the_broker(spark: SparkSession, broker: FakeBroker) -> None:
    broker.pulls.clear()
    frame = read(spark, broker, subscribe="orders", sql="region = 'eu' AND TAGS = 'paid'")
    # This broker gives everything: what is not wanted is left out all the same.
    assert {(row.properties["region"], row.tag) for row in frame.collect()} == {("eu", "paid")}
    assert frame.count() == 55
    assert {(pull.expression_type, pull.subscription) for pull in broker.pulls} == {
        ("SQL92", "region = 'eu' AND TAGS = 'paid'")
    }


def test_a_store_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number in range(50):
        store.add("orders" if number % 5 else "returns", number % 2, body=b"%d" % number)
    reader: Any = spark.read.format("rocketmq").option("store", str(store.save()))
    frame = reader.load()
    narrowed = reader.option("pushDownPredicate", "true").load()
    assert frame.groupBy("topic").count().orderBy("topic").collect() == [
        ("orders", 40),
        ("returns", 10),
    ]
    assert narrowed.where("topic = 'returns' and tag = 'paid'").count() == 10
    assert frame.where("store_timestamp < timestamp '2023-01-01'").count() == 0
    pruned = reader.schema("log_offset bigint, body string").load()
    assert [row.body for row in pruned.orderBy("log_offset").collect()] == [
        str(number) for number in range(50)
    ]
