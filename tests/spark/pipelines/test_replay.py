from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import SprocketError, UsageError
from sprocket.spark.pipelines import Archive, Replay
from sprocket.spark.pipelines.parts.progress import Progress
from sprocket.spark.pipelines.replay import MARK
from tests.spark.pipelines.shop import CORRUPT, ORDERS, body_of, tag_of, topic_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_an_archive_goes_back_with_all_its_sender_set_and_says_where_from(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "a")
    Archive(nameservers=shop, topics=("orders",), folder=folder, batch_rows=25).run(spark)
    job = Replay(nameservers=shop, archive=folder, to="again")
    done = job.run(spark)
    assert (done.rows, done.total_rows, done.is_interrupted) == (ORDERS, ORDERS, False)
    assert job.run(spark).rows == 0
    sent = topic_rows(spark, shop, "again", "key", "tag", "body", "properties.region", "flag")
    wanted = [(f"o-{n}", tag_of(n), body_of(n), "eu", n) for n in range(ORDERS)]
    assert sent == sorted(wanted)
    places = topic_rows(spark, shop, "orders", "topic", "broker", "queue_id", "queue_offset")
    marks = sorted((f"{t}@{b}:{q}/{o}",) for t, b, q, o in places)
    assert topic_rows(spark, shop, "again", f"properties.{MARK}") == marks


def test_a_run_that_fails_goes_on_behind_its_last_whole_slice(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    job = Replay(
        nameservers=shop,
        topics=("orders",),
        to="some-again",
        where="tag = 'paid'",
        slice_rows=20,
        state=str(tmp_path / "state"),
    )

    def stop(progress: Progress) -> None:
        raise SprocketError(f"stopped after {progress.rows}")

    with pytest.raises(SprocketError, match="stopped after 10"):
        job.run(spark, stop)
    assert len(topic_rows(spark, shop, "some-again", "key")) == 10
    seen: list[Progress] = []
    done = job.run(spark, seen.append)
    assert (done.rows, done.total_rows, done.repeats_max) == (10, 20, 20)
    assert [one.behind for one in seen] == [0]
    keys = sorted((f"o-{number}",) for number in range(1, ORDERS, 2))
    assert topic_rows(spark, shop, "some-again", "key") == keys
    with pytest.raises(UsageError, match="state of another job"):
        Replay(nameservers=shop, topics=("orders",), to="x", state=str(tmp_path / "state")).run(
            spark
        )


def test_a_rate_is_kept_and_bodies_that_were_opened_are_closed_again(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "a")
    schema = "`order` string, amount double"
    Archive(nameservers=shop, topics=("orders",), folder=folder, body="json", schema=schema).run(
        spark
    )
    job = Replay(nameservers=shop, archive=folder, to="slow", rate=20.0, where="amount IS NOT NULL")
    with pytest.raises(UsageError, match="cannot choose rows"):
        job.run(spark)
    job = Replay(nameservers=shop, archive=folder, to="slow", rate=30.0)
    assert job.run(spark).rows == ORDERS
    sent = dict(topic_rows(spark, shop, "slow", "key", "body"))
    assert sent["o-3"] == b'{"order":"o-3","amount":1.5}'
    assert all(sent[f"o-{number}"] == body_of(number) for number in CORRUPT)


def test_what_makes_no_sense_is_refused(spark: SparkSession, shop: str) -> None:
    with pytest.raises(UsageError, match="an archive, or topics"):
        Replay(nameservers=shop, to="t").run(spark)
    with pytest.raises(UsageError, match="into itself needs an end"):
        Replay(nameservers=shop, topics=("orders",), to="orders").run(spark)
    with pytest.raises(UsageError, match="a rate is more than 0"):
        Replay(nameservers=shop, topics=("orders",), to="t", rate=0.0).run(spark)
    with pytest.raises(UsageError, match="holds nothing yet"):
        Replay(nameservers=shop, archive="nowhere", to="t").run(spark)
