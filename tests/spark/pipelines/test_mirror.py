from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer
from sprocket.message.queue import QueueId
from sprocket.spark.pipelines import Mirror
from sprocket.spark.pipelines.mirror import MARK
from sprocket.spark.pipelines.parts import offsets, translate
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.servers import Servers
from sprocket.spark.pipelines.parts.streams import StreamFailed
from sprocket.spark.pipelines.tables.opened import read_back
from tests.spark.pipelines.shop import ORDERS, body_of, tag_of, topic_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLACE = ("topic", "broker", "queue_id", "queue_offset")


def test_a_mirror_keeps_order_maps_offsets_and_a_crash_repeats_nothing(
    spark: SparkSession, shop: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody else's message lies where the mirror writes: offsets are not equal by chance.
    with Producer("p", nameservers=elsewhere) as producer:
        for queue in producer.queues("orders"):
            producer.send(Message("orders", b"not mirrored"), queue=queue)
    job = Mirror(
        nameservers=shop,
        to_nameservers=elsewhere,
        topics=("orders",),
        folder="mirror",
        batch_rows=30,
    )
    whole = Batches._commit

    def cut_off(batches: Batches, mark: Any) -> None:
        if mark.last == 1:
            raise OSError("the disk is gone")
        whole(batches, mark)

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "_commit", cut_off)
        with pytest.raises(StreamFailed, match="the disk is gone"):
            job.run(spark)
    done = job.run(spark)
    assert (done.rows, done.total_rows) == (10, ORDERS)
    brought = [
        row
        for row in topic_rows(spark, elsewhere, "orders", f"properties.{MARK}", *PLACE)
        if row[0]
    ]
    assert len(brought) == ORDERS
    came = {row[0]: QueueId(*row[1:4]) for row in brought}
    at = {row[0]: row[4] for row in brought}
    ways: dict[QueueId, set[QueueId]] = {}
    for topic, broker, queue, offset in topic_rows(spark, shop, "orders", *PLACE):
        source = QueueId(topic, broker, queue)
        mark = f"{source}/{offset}"
        ways.setdefault(source, set()).add(came[mark])
        assert at[mark] == offset + 1
    assert all(len(targets) == 1 for targets in ways.values())
    sent = topic_rows(spark, elsewhere, "orders", "key", "tag", "body", "properties.region", "flag")
    wanted = [(f"o-{n}", tag_of(n), body_of(n), "eu", n) for n in range(ORDERS)]
    assert [row for row in sent if row[2] != b"not mirrored"] == sorted(wanted)
    _groups_follow(spark, job, ways)


def _groups_follow(spark: SparkSession, job: Mirror, ways: dict[QueueId, set[QueueId]]) -> None:
    source, target = Servers(job.nameservers), Servers(job.to_nameservers)
    stands = {queue: 3 + number for number, queue in enumerate(sorted(ways))}
    source.ask(lambda caller: offsets.commit(caller, "reader", stands))
    kept = read_back(spark, job.folder).read()
    follower = translate.GroupOffsetSync(source, target, kept)
    followed = follower.move(["reader", "nobody"])
    assert {(one.queue, one.moved_to) for one in followed} == {
        (queue, stand + 1) for queue, stand in stands.items()
    }
    # Where the group stands at the target already is not taken back.
    ahead = {one.target: 100 for one in followed[:1] if one.target is not None}
    target.ask(lambda caller: offsets.commit(caller, "reader", ahead))
    follower.move(["reader"])
    from sprocket.admin import positions

    lag = target.ask(lambda caller: positions.lag(caller, "reader"))
    now = {QueueId(one.topic, one.broker, one.number): one.committed for one in lag.queues}
    wanted = {one.target: one.moved_to for one in followed}
    assert now == {**wanted, **ahead}


def test_two_clusters_may_mirror_each_other(spark: SparkSession, shop: str, elsewhere: str) -> None:
    with Producer("p", nameservers=shop) as producer:
        producer.send(Message("both", b"here"))
    with Producer("p", nameservers=elsewhere) as producer:
        producer.send(Message("both", b"there"))
    there = Mirror(nameservers=shop, to_nameservers=elsewhere, topics=("both",), folder="there")
    back = Mirror(nameservers=elsewhere, to_nameservers=shop, topics=("both",), folder="back")
    assert [job.run(spark).rows for job in (there, back)] == [1, 1]
    for address in (shop, elsewhere):
        assert topic_rows(spark, address, "both", "body") == [(b"here",), (b"there",)]


def test_a_cluster_into_itself_needs_another_name(spark: SparkSession, shop: str) -> None:
    job = Mirror(nameservers=shop, to_nameservers=shop, topics=("orders",), folder="m")
    with pytest.raises(UsageError, match="needs a prefix"):
        job.run(spark)


def test_offsets_are_translated_to_the_message_or_the_next_one_behind_it(
    spark: SparkSession,
) -> None:
    columns = (
        "source_topic string, source_broker string, source_queue int, source_offset bigint, "
        "topic string, broker string, queue_id int, queue_offset bigint"
    )
    # 0 1 2, a repeat of 2, nothing for 3 and 4, then 5 6.
    places = [(0, 10), (1, 11), (2, 12), (2, 13), (5, 14), (6, 15)]
    rows = [("t", "a", 0, source, "u", "b", 1, target) for source, target in places]
    kept = translate.segments(spark.createDataFrame(rows, columns))
    follower = translate.GroupOffsetSync(Servers("a:1"), Servers("b:1"), kept)
    queue = QueueId("t", "a", 0)
    moved = {at: follower._translated("g", {queue: at})[0].moved_to for at in range(9)}
    assert moved == {0: 10, 1: 11, 2: 12, 3: 14, 4: 14, 5: 14, 6: 15, 7: 16, 8: 16}
    stranger = follower._translated("g", {QueueId("t", "z", 0): 4})
    assert [(one.target, one.moved_to) for one in stranger] == [(None, None)]
