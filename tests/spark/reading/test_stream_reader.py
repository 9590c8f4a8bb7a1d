from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sprocket.message.queue import QueueId
from tests.spark.support import FakeBroker, Shelf, record, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")
pytestmark = pytest.mark.spark

QUEUES = [QueueId("orders", "broker-a", number) for number in range(3)]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {queue: Shelf([record(offset) for offset in range(100)]) for queue in QUEUES}
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def stream(spark: SparkSession, broker: FakeBroker, **options: str) -> DataFrame:
    reader: Any = spark.readStream.format("rocketmq").option("namesrvAddr", broker.address)
    loaded: DataFrame = reader.options(
        **{"subscribe": "orders", "startingOffsets": "earliest", **options}
    ).load()
    return loaded


def archive(frame: DataFrame, folder: Path) -> Any:
    """Writes what is there now as Parquet, and waits for it."""
    writer: Any = frame.select("queue_id", "queue_offset").writeStream
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    )
    started = query.start(str(folder / "data"))
    started.awaitTermination(600)
    return started


def rows(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in spark.read.parquet(str(folder / "data")).collect())


def test_a_stream_goes_on_where_its_checkpoint_is_and_repeats_nothing(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    first = archive(stream(spark, broker, maxOffsetsPerTrigger="130", group="archive"), tmp_path)
    assert [one.numInputRows for one in first.recentProgress] == [130, 130, 40]
    for queue in QUEUES:
        assert broker.committed["archive", queue] == 100
    broker.shelves[QUEUES[1]].records += [record(100), record(101)]
    broker.shelves[QueueId("orders", "broker-a", 3)] = Shelf([record(0)])
    archive(stream(spark, broker, group="archive"), tmp_path)
    expected = [(queue.number, offset) for queue in QUEUES for offset in range(100)]
    assert rows(spark, tmp_path) == sorted([*expected, (1, 100), (1, 101), (3, 0)])


def test_a_stream_that_cannot_be_read_whole_fails_and_says_where(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    broker.shelves[QUEUES[2]].records[50] = None
    with pytest.raises(Exception, match=r"orders@broker-a:2: 1 messages are gone"):
        archive(stream(spark, broker), tmp_path)


def test_a_limit_of_bytes_holds_for_each_batch_of_all_that_is_there(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    size = str(150 * len(record(0)))
    done = archive(stream(spark, broker, maxBytesPerTrigger=size), tmp_path)
    assert [one.numInputRows for one in done.recentProgress] == [150, 150]
    both = {"maxBytesPerTrigger": size, "maxOffsetsPerTrigger": "120"}
    done = archive(stream(spark, broker, **both), tmp_path / "both")
    assert [one.numInputRows for one in done.recentProgress] == [120, 120, 60]
