from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import spark as sprocket_spark
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import StreamOffsets
from sprocket.spark.query_metrics import QueryMetrics, listen
from tests.cli.parts import eventually
from tests.spark.support import FakeBroker, Shelf, record, serving
from tests.spark.test_query_progress import AT_MS, seen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A = QueueId("orders", "broker-a", 0)
NAMED = {"id": "q-1", "runId": "r-1", "name": "archive"}


def batch(first: int, end: int, latest: int, rows: int, **more: Any) -> dict[str, Any]:
    witness = {A: Witness(end - 1, 100, AT_MS - 4_000)}
    return seen(
        StreamOffsets({A: first}),
        StreamOffsets({A: end}, witness),
        {A: latest},
        rows,
        **NAMED,
        **more,
    )


def test_totals_add_up_and_gauges_are_those_of_the_last_batch() -> None:
    metrics = QueryMetrics()
    assert metrics.text() == ""
    metrics.record(batch(0, 10, 30, 10, observedMetrics={"rocketmq": {"bytes": 1000}}))
    metrics.record(batch(10, 20, 25, 9, observedMetrics={"rocketmq": {"bytes": 900}}))
    lines = metrics.text().splitlines()
    for wanted in (
        'sprocket_spark_batches_total{query="archive"} 2',
        'sprocket_spark_rows_total{query="archive"} 19',
        'sprocket_spark_bytes_total{query="archive"} 1900',
        'sprocket_spark_missing_total{query="archive"} 1',
        'sprocket_spark_behind_messages{query="archive",source="1",topic="orders"} 5',
        'sprocket_spark_behind_seconds{query="archive",source="1"} 4',
    ):
        assert wanted in lines
    metrics.record(batch(20, 25, 25, 5))
    assert 'sprocket_spark_behind_messages{query="archive",source="1",topic="orders"} 0' in (
        metrics.text()
    )
    metrics.onQueryTerminated(SimpleNamespace(id="q-1"))
    assert "behind" not in metrics.text()
    assert 'sprocket_spark_rows_total{query="archive"} 24' in metrics.text()


def test_a_query_that_begins_anew_goes_on_with_its_name() -> None:
    """Its new checkpoint has another id; no series may be there twice."""
    metrics = QueryMetrics()
    metrics.record(batch(0, 10, 30, 10))
    metrics.onQueryTerminated(SimpleNamespace(id="q-1"))
    metrics.record({**batch(0, 10, 30, 10), "id": "q-2"})
    lines = metrics.text().splitlines()
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(set(series)) == len(series)
    assert 'sprocket_spark_rows_total{query="archive"} 20' in lines
    metrics.onQueryTerminated(SimpleNamespace(id="q-1"))
    assert "behind" in metrics.text()


def test_queries_of_other_sources_are_left_out() -> None:
    metrics = QueryMetrics()
    given = batch(0, 10, 30, 10)
    metrics.record({**given, "sources": given["sources"][:1]})
    assert metrics.text() == ""


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with serving(FakeBroker({A: Shelf([record(offset) for offset in range(100)])})) as broker:
        yield broker


@pytest.mark.spark
def test_a_listener_counts_what_a_query_reads(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    broker.shelves[A].records[80] = None
    metrics = listen(spark)
    try:
        query = (
            spark.readStream.format("rocketmq")
            .schema("queue_offset bigint, record_bytes int")
            .options(namesrvAddr=broker.address, subscribe="orders", startingOffsets="earliest")
            .options(maxOffsetsPerTrigger=60, failOnDataLoss="false")
            .load()
            .observe("rocketmq", f.sum("record_bytes").alias("bytes"))
            .writeStream.format("noop")
            .queryName("counted")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)
        first, last = (sprocket_spark.progress(one)[0] for one in query.recentProgress)
        assert (first.rows, first.missing, first.messages_behind) == (60, None, 40)
        assert first.behind_ms is not None
        assert first.behind_ms > 0
        assert (last.rows, last.missing, last.messages_behind, last.behind_ms) == (39, 1, 0, 0)
        size = 99 * len(record(0))
        eventually(lambda: f'bytes_total{{query="counted"}} {size}' in metrics.text())
        assert 'sprocket_spark_missing_total{query="counted"} 1' in metrics.text()
    finally:
        spark.streams.removeListener(metrics)
