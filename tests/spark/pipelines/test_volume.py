from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer
from sprocket.spark.pipelines import Volume
from sprocket.spark.pipelines.parts.progress import Progress
from sprocket.spark.pipelines.parts.spread import POINTS_MAX, width_of
from tests.spark.pipelines.shop import ORDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_messages_and_bytes_are_counted_by_topic_and_tag(spark: SparkSession, shop: str) -> None:
    seen: list[Progress] = []
    found = Volume(nameservers=shop, topics=("orders",)).run(spark, seen.append)
    assert (found.rows, found.messages) == (ORDERS, ORDERS)
    assert [(topic, count) for topic, count, _ in found.topics] == [("orders", ORDERS)]
    assert [one[:3] for one in found.tags] == [("orders", "new", 20), ("orders", "paid", 20)]
    assert found.bytes == sum(one[3] for one in found.tags) > ORDERS * 88
    assert found.busiest is not None
    assert found.busiest[0] == "orders"
    assert found.busiest[1] % 60_000 == 0
    points = found.per_minute.lines["orders"]
    assert sum(count for _, count in points) == ORDERS
    assert seen[-1].rows == ORDERS
    page = found.report()
    assert page.as_json()["messages"] == ORDERS
    assert "orders" in page.html()


@pytest.mark.spark
def test_a_folder_grows_by_what_is_new_and_the_report_is_of_all(
    spark: SparkSession, shop: str
) -> None:
    job = Volume(nameservers=shop, topics=("counted",), folder="counts")
    with Producer("p", nameservers=shop) as producer:
        producer.send(Message("counted", b"a", tag="t"))
        assert job.run(spark).messages == 1
        producer.send(Message("counted", b"b"))
    found = job.run(spark)
    assert (found.rows, found.messages) == (1, 2)
    assert [one[:3] for one in found.tags] == [("counted", "-", 1), ("counted", "t", 1)]
    with pytest.raises(UsageError, match="has no end"):
        Volume(nameservers=shop, topics=("x",), folder="counts", until_ms=5).run(spark)


@pytest.mark.parametrize("span_ms", [0, 1, 59_999, 60_000, 86_400_000, 10**12])
def test_a_plot_has_as_many_points_as_it_can_show_at_most(span_ms: int) -> None:
    width = width_of(span_ms, 60_000)
    assert width % 60_000 == 0
    assert span_ms // width <= POINTS_MAX
