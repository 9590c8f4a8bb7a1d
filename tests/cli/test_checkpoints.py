"""`sprocket spark checkpoint`: a query goes on where its checkpoint was set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sprocket.testing.node_thread import NodeThread
from tests.cli.parts import Outcome, sprocket
from tests.spark.conftest import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]

QUEUE = ("broker-a", 0)


def checkpoint(node: NodeThread, *words: str) -> Outcome:
    return sprocket("spark", "checkpoint", *words, SPROCKET_NAMESERVERS=node.nameservers)


def kept(folder: Path, topic: str, offset: int) -> str:
    """A checkpoint as Spark writes it, of a batch that is done."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "0").write_text("v1\n{}")
    place = {topic: {QUEUE[0]: {str(QUEUE[1]): offset}}}
    (folder / "offsets" / "0").write_text("\n".join(["v1", "{}", json.dumps(place)]))
    return str(folder)


def shown(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.lines]


@pytest.mark.process
def test_it_is_shown_and_set_by_time_offset_and_group(
    own_rocketmq: NodeThread, tmp_path: Path
) -> None:
    topic = own_rocketmq.topic("orders")
    for number in range(5):
        own_rocketmq.send(topic, f"{number}")
    folder = kept(tmp_path, topic, 3)
    (row,) = shown(checkpoint(own_rocketmq, "show", folder, "--lag", "--json"))
    assert (row["topic"], row["offset"], row["end"], row["behind"]) == (topic, 3, 5, 2)
    assert "micro-batch 0, done" in checkpoint(own_rocketmq, "show", folder).out
    (offsets,) = shown(checkpoint(own_rocketmq, "show", folder, "--offsets"))
    assert offsets == {topic: {"broker-a": {"0": 3}}}

    for words, expected in (
        (("--to", "first"), 0),
        (("--to", "last"), 5),
        (("--to", "1h"), 0),
        (("--queue", "broker-a:0", "--offset", "4"), 4),
    ):
        set_ = checkpoint(own_rocketmq, "set", folder, topic, *words, "--yes")
        assert set_.code == 0, set_.err
        (row,) = shown(checkpoint(own_rocketmq, "show", folder, "--json"))
        assert row["offset"] == expected

    for words, text in (
        ((topic, "--to", "group:nobody"), "nobody"),
        (("another", "--to", "first"), f"it reads {topic}"),
        ((topic, "--queue", "broker-b:0", "--to", "first"), "does not read"),
        ((topic, "--to", "first", "--offset", "3"), "give --to, or"),
        ((topic, "--to", ""), "a time is first, last"),
        ((topic, "--queue", "broker-a:0", "--offset", str(1 << 63)), "--offset"),
        ((topic, "--to", "first", "--source", "4"), "--source"),
    ):
        refused = checkpoint(own_rocketmq, "set", folder, *words, "--yes")
        assert refused.code in (1, 2)
        assert text in refused.err
    # without an answer nothing is changed
    assert checkpoint(own_rocketmq, "set", folder, topic, "--to", "first").code != 0
    (row,) = shown(checkpoint(own_rocketmq, "show", folder, "--json"))
    assert row["offset"] == 4


@pytest.mark.spark
def test_spark_goes_on_where_it_was_set(
    spark: SparkSession, own_rocketmq: NodeThread, tmp_path: Path
) -> None:
    topic = own_rocketmq.topic("orders")

    def read_on() -> list[str]:
        """The bodies that a run of the query writes."""
        written = tmp_path / "out"
        seen = set(written.glob("*.parquet"))
        query = (
            spark.readStream.format("rocketmq")
            .options(namesrvAddr=own_rocketmq.nameservers, subscribe=topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.option("checkpointLocation", str(tmp_path / "cp"))
            .trigger(availableNow=True)
            .start(str(written))
        )
        query.awaitTermination()
        new = [str(path) for path in set(written.glob("*.parquet")) - seen]
        if not new:
            return []
        rows = spark.read.parquet(*new).selectExpr("string(body) as body").collect()
        return sorted(row.body for row in rows)

    for number in range(4):
        own_rocketmq.send(topic, f"{number}")
    assert read_on() == ["0", "1", "2", "3"]
    folder = str(tmp_path / "cp")
    set_ = checkpoint(
        own_rocketmq, "set", folder, topic, "--queue", "broker-a:0", "--offset", "2", "--yes"
    )
    assert set_.code == 0, set_.err
    own_rocketmq.send(topic, "4")
    assert read_on() == ["2", "3", "4"]
    assert read_on() == []
