"""Pipelines on a cluster of Java's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Later, Message
from sprocket.client.blocking import Producer, PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.spark.pipelines import Archive, DeadLetters, Lag, Volume
from tests.compat.javaland import JavaBroker, JavaNameServer, mqadmin, require_java, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.process, pytest.mark.timeout(900)]

_SENT = 20


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Name servers of a cluster with twenty messages of which the group `weary` gave up two."""
    require_java()
    work = tmp_path_factory.mktemp("java")
    with JavaNameServer(work) as servers, JavaBroker(work, servers.address):
        mqadmin(
            "updateTopic", "-t", "bought", "-c", "DefaultCluster", "-r", "4", "-w", "4",
            namesrv=servers.address,
        )  # fmt: skip
        with Producer("p", nameservers=servers.address) as producer:
            for number in range(_SENT):
                body = b'{"number": %d}' % number
                producer.send(Message("bought", body, tag="new", keys=[f"b-{number}"]))
        yield servers.address


def give_up_two(message: StoredMessage) -> Later | None:
    return Later(-1) if message.keys[0] in ("b-3", "b-4") else None


def test_an_archive_the_lag_and_dead_letters_of_a_java_cluster(
    spark: SparkSession, names: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "archive")
    archive = Archive(
        nameservers=names, topics=("bought",), folder=folder, body="json", schema="number int"
    )
    # Java's broker acknowledges before its queues show what was stored.
    wait_until(lambda: archive.run(spark).total_rows == _SENT)
    found = spark.read.parquet(f"{folder}/topic=bought").select("data.number")
    assert sorted(row.number for row in found.collect()) == list(range(_SENT))
    assert Volume(nameservers=names, topics=("bought",)).run(spark).messages == _SENT

    letters = DeadLetters(nameservers=names, groups=("weary",))
    with PushConsumer("weary", nameservers=names, start="first") as consumer:
        consumer.subscribe("bought", listener=give_up_two)
        wait_until(lambda: letters.run(spark).found == 2)
    lag = Lag(nameservers=names, folder=str(tmp_path / "lag"), groups=("weary",), rounds=1).run(
        spark
    )
    assert (lag.failed, [one.group for one in lag.groups]) == (0, ["weary"])

    returned = DeadLetters(nameservers=names, groups=("weary",), send_back="group")
    assert returned.run(spark).sent_back == 2
    got: list[str] = []
    with PushConsumer("weary", nameservers=names, start="first") as consumer:
        consumer.subscribe("bought", listener=lambda message: got.append(message.keys[0]))
        wait_until(lambda: len(got) >= 2)
    assert sorted(got) == ["b-3", "b-4"]
