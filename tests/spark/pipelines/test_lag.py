from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import TransportError
from sprocket.message.queue import QueueId
from sprocket.spark.pipelines import Lag
from sprocket.spark.pipelines.lag import Sample
from sprocket.spark.pipelines.parts import offsets
from sprocket.spark.pipelines.parts.servers import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
AT = 1_700_000_000_000


def test_rounds_are_added_to_the_folder_and_reported_with_what_lay_there(
    spark: SparkSession, shop: str
) -> None:
    servers = Servers(shop)
    ends = offsets.ends(servers, ["orders"])
    servers.ask(
        lambda caller: offsets.commit(caller, "slow", {q: at - 4 for q, at in ends.items()})
    )
    job = Lag(nameservers=shop, groups=("slow",), folder="samples", rounds=2, every_s=0.0)
    earlier = [
        Sample(AT, "slow", "orders", "broker-a", 0, 0, 50, 50, 0),
        Sample(AT + 10_000, "slow", "orders", "broker-a", 0, 40, 50, 10, 0),
        Sample(AT + 10_000, "<b>gone</b>", "orders", "broker-a", 0, 0, 7, 7, 0),
    ]
    job.write(spark, earlier)
    found = job.run(spark)
    assert (found.rows, found.rounds, found.failed) == (2 * len(ends), 2, 0)
    slow, gone = found.groups
    assert (slow.group, slow.behind, slow.worst, slow.worst_ms) == ("slow", 16, 50, AT)
    assert (gone.group, gone.behind, gone.per_second) == ("<b>gone</b>", 7, 0.0)
    assert {one[:4] for one in found.queues} == {("slow", *queue) for queue in ends}
    assert {one[4] for one in found.queues} == {4}
    assert found.lines["slow"][0] == (found.lines["slow"][0][0], 10.0)
    assert "&lt;b&gt;gone&lt;/b&gt;" in found.report().html()
    again = Lag(nameservers=shop, folder="samples", rounds=0).run(spark)
    assert (again.rows, again.groups) == (0, found.groups)


def test_samples_may_be_csv(spark: SparkSession, shop: str) -> None:
    job = Lag(nameservers=shop, folder="samples", rounds=0, form="csv")
    assert job.run(spark).groups == ()
    job.write(spark, [Sample(AT, "g", "t", "b", 3, 1, 5, 4, AT)])
    assert [tuple(row)[:9] for row in job.read(spark).collect()] == [
        (AT, "g", "t", "b", 3, 1, 5, 4, AT)
    ]


def test_a_cluster_that_does_not_answer_at_first_ends_it(spark: SparkSession) -> None:
    with pytest.raises(TransportError):
        Lag(nameservers="127.0.0.1:1", folder="samples", rounds=1).run(spark)


def test_a_span_is_by_time_and_a_time_without_messages_is_the_end(shop: str) -> None:
    servers = Servers(shop)
    start, end = offsets.span(servers, ["orders"], since_ms=None, until_ms=None)
    assert sum(end.values()) - sum(start.values()) == 40
    later = offsets.span(servers, ["orders"], since_ms=2**42, until_ms=None)
    assert later == (end, end)
    assert offsets.span(servers, ["orders"], since_ms=None, until_ms=1) == (start, start)
    assert all(isinstance(queue, QueueId) for queue in end)
