from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.framing import join
from sprocket.spark.pipelines import Archive
from sprocket.spark.pipelines import archive as archives
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.progress import Progress
from sprocket.spark.pipelines.parts.streams import StreamFailed
from tests.cli.parts import sprocket
from tests.schemas.parts import AVRO_ORDER, ORDER
from tests.spark.pipelines.shop import CORRUPT, ORDERS, body_of, rows, tag_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_an_archive_holds_every_message_once_and_grows_by_what_is_new(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    with Producer("p", nameservers=shop) as producer:
        producer.send(Message("007", b"first", tag="t", keys=["a"], properties={"x": "1"}, flag=5))
        job = Archive(nameservers=shop, topics=("007",), folder=str(tmp_path / "a"))
        seen: list[Progress] = []
        done = job.run(spark, seen.append)
        assert (done.rows, done.total_rows, done.topics) == (1, 1, (("007", 1),))
        assert seen[-1] == Progress(1, seen[-1].per_second, 0)
        producer.send(Message("007", b"second"))
    done = job.run(spark)
    assert (done.rows, done.total_rows, done.batches, done.is_interrupted) == (1, 2, 1, False)
    assert job.run(spark).rows == 0
    found = archives.read(spark, job.folder)
    assert rows(found, "topic", "body", "batch") == [("007", b"first", 0), ("007", b"second", 1)]
    first = found.where("tag = 't'").collect()[0]
    assert (first.key, first.flag, first.properties["x"]) == ("a", 5, "1")
    folders = list((tmp_path / "a").glob("topic=007/date=20??-??-??/batch=?/*.parquet"))
    assert len(folders) == 2


def test_a_batch_that_was_cut_off_is_done_again_and_replaces_itself(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Archive(nameservers=shop, topics=("orders",), folder=str(tmp_path / "a"), batch_rows=15)
    whole = Batches._commit

    def cut_off(batches: Batches, mark: Any) -> None:
        if mark.last == 1:
            raise OSError("the disk is gone")
        whole(batches, mark)

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "_commit", cut_off)
        with pytest.raises(StreamFailed, match="the disk is gone"):
            job.run(spark)
    assert list((tmp_path / "a").glob("topic=orders/date=*/batch=1/*.parquet"))
    assert archives.read(spark, job.folder).count() == 15
    done = job.run(spark)
    assert (done.rows, done.total_rows) == (25, 40)
    everything = [(f"o-{number}", body_of(number)) for number in range(ORDERS)]
    assert rows(archives.read(spark, job.folder), "key", "body") == sorted(everything)
    # Any reader of Parquet sees the same.
    assert spark.read.parquet(job.folder).count() == ORDERS


def _sent(shop: str, topic: str, count: int) -> list[bytes]:
    bodies = [b"%s %d" % (uuid.uuid4().hex.encode(), number) for number in range(count)]
    with Producer("p", nameservers=shop) as producer:
        producer.send_batch([Message(topic, body) for body in bodies])
    return bodies


@pytest.mark.parametrize("count", [3, 20, 30], ids=["fewer", "equal", "more"])
def test_a_topic_that_was_deleted_and_made_again_is_archived_whole_or_not_at_all(
    spark: SparkSession, shop: str, tmp_path: Path, count: int
) -> None:
    topic = f"renewed-{count}"
    assert sprocket("topic", "create", topic, "--queues", "1", "--nameserver", shop).code == 0
    old = _sent(shop, topic, 20)
    job = Archive(nameservers=shop, topics=(topic,), folder=str(tmp_path / "a"))
    assert job.run(spark).rows == 20
    assert sprocket("topic", "delete", topic, "--yes", "--nameserver", shop).code == 0
    assert sprocket("topic", "create", topic, "--queues", "1", "--nameserver", shop).code == 0
    new = _sent(shop, topic, count)
    with pytest.raises(StreamFailed, match=rf"{topic}@.*made anew.*--allow-loss"):
        job.run(spark)
    done = replace(job, allows_loss=True).run(spark)
    assert (done.rows, done.total_rows) == (count, 20 + count)
    assert rows(archives.read(spark, job.folder), "body") == sorted((b,) for b in old + new)
    # From here on it is an ordinary topic again.
    new = _sent(shop, topic, 2)
    assert job.run(spark).rows == 2


def test_a_mark_that_was_removed_is_counted_again(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    _sent(shop, "marked", 9)
    job = Archive(nameservers=shop, topics=("marked",), folder=str(tmp_path / "a"), batch_rows=4)
    assert job.run(spark).total_rows == 9
    (tmp_path / "a" / "_sprocket" / "committed.json").unlink()
    _sent(shop, "marked", 2)
    done = job.run(spark)
    assert (done.rows, done.total_rows) == (2, 11)
    assert archives.read(spark, job.folder).count() == 11


def test_ctrl_c_ends_what_follows_between_batches(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "a")
    job = Archive(nameservers=shop, topics=("orders",), folder=folder, follows=True, every_s=0.1)
    done = job.run(spark, lambda _: signal.raise_signal(signal.SIGINT))
    assert (done.is_interrupted, done.rows, done.total_rows) == (True, ORDERS, ORDERS)
    assert done.report().as_json()["stopped_before_the_end"] is True


def test_json_bodies_are_opened_and_what_is_none_is_kept_aside(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    job = Archive(
        nameservers=shop,
        topics=("orders",),
        folder=str(tmp_path / "given"),
        body="json",
        schema="`order` string, amount double",
    )
    done = job.run(spark)
    assert (done.rows, done.corrupt) == (ORDERS, len(CORRUPT))
    found = archives.read(spark, job.folder)
    assert "body" not in found.columns
    good = rows(found.where("body_corrupt IS NULL"), "data.order", "data.amount")
    assert good == sorted((f"o-{n}", n / 2) for n in range(ORDERS) if n not in CORRUPT)
    bad = rows(found.where("body_corrupt IS NOT NULL"), "body_corrupt")
    assert bad == sorted((body_of(number),) for number in CORRUPT)

    inferred = Archive(
        nameservers=shop, topics=("orders",), folder=str(tmp_path / "found"), body="json"
    )
    assert inferred.run(spark).corrupt == len(CORRUPT)
    found = archives.read(spark, inferred.folder)
    amounts = rows(found.where("data.amount IS NOT NULL"), "data.amount")
    assert amounts == [(n / 2,) for n in range(ORDERS) if n not in CORRUPT]
    assert found.where("body IS NULL").count() == 0


def test_a_folder_takes_one_archive(spark: SparkSession, shop: str, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    job = Archive(nameservers=shop, topics=("orders",), folder=str(folder), tags="none-has-it")
    assert job.run(spark).total_rows == 0
    with pytest.raises(UsageError, match="other bodies or another schema"):
        Archive(
            nameservers=shop, topics=("orders",), folder=str(folder), body="json", schema="a int"
        ).run(spark)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something else"):
        Archive(nameservers=shop, topics=("orders",), folder=str(tmp_path / "b")).run(spark)
    with pytest.raises(UsageError, match="is no DDL text"):
        Archive(nameservers=shop, topics=("orders",), folder="c", body="json", schema="a what").run(
            spark
        )
    with pytest.raises(UsageError, match="topics, or a pattern"):
        Archive(nameservers=shop, folder="c").run(spark)
    with pytest.raises(UsageError, match="body is one of raw, json"):
        Archive(nameservers=shop, topics=("orders",), folder="c", body="xml")


@pytest.mark.timeout(900)
@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="takes a minute: SPROCKET_LONG=1 runs it"
)
def test_killed_with_all_its_processes_and_started_again_it_equals_the_topic(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    words = ["pipeline", "run", "archive", "--topic", "orders", "--to", str(folder)]
    killed = subprocess.Popen(
        [sys.executable, "-m", "sprocket", *words, "--batch-rows", "1", "--nameserver", shop,
         "--master", "local[1]", "--conf",
         "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while len(list(folder.glob("topic=orders/date=*/batch=*"))) < 3:
            assert killed.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        _kill_tree(killed.pid)
        killed.wait()
    before = archives.read(spark, str(folder)).count()
    assert 1 <= before < ORDERS
    job = Archive(nameservers=shop, topics=("orders",), folder=str(folder))
    assert job.run(spark).total_rows == ORDERS
    found = archives.read(spark, str(folder))
    assert rows(found, "key", "tag") == sorted((f"o-{n}", tag_of(n)) for n in range(ORDERS))


def _kill_tree(root: int) -> None:
    """SIGKILL to a process, Spark's JVM and its Python workers, which have groups of their own."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    doomed = {root}
    while more := {child for child, parent in parents.items() if parent in doomed} - doomed:
        doomed |= more
    for process in doomed:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_bodies_by_a_schema_are_columns_and_the_others_are_kept(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastavro")
    (tmp_path / "1.avsc").write_text(AVRO_ORDER)
    avro = AvroBodies(AVRO_ORDER).encode(ORDER)
    with Producer("p", nameservers=shop) as producer:
        producer.send(Message("avro", join(1, avro)))
        producer.send(Message("avro", b"plain"))
    given = ("bodyFormat=avro", f"schemaRegistry={tmp_path}", "schemaSubject=1")
    job = Archive(
        nameservers=shop, topics=("avro",), folder=str(tmp_path / "a"), body="decoded",
        options=given,
    )  # fmt: skip
    done = job.run(spark)
    assert (done.rows, done.corrupt) == (2, 1)
    kept = archives.read(spark, job.folder)
    found = set(rows(kept, "data.id", "body_corrupt", "body"))
    assert found == {("o-1", None, join(1, avro)), (None, b"plain", b"plain")}

    monkeypatch.setenv("SPROCKET_REGISTRY_USER", "u")
    assert job.source()["schemaRegistryUser"] == "u"
    assert "schemaRegistryUser" not in replace(job, options=()).source()
    with pytest.raises(UsageError, match="need --option bodyFormat"):
        replace(job, options=(), folder=str(tmp_path / "b")).run(spark)
    with pytest.raises(UsageError, match=r"no such file: nowhere\.json"):
        replace(job, options=("bodyFormat=json", "bodySchema=nowhere.json")).check()
    with pytest.raises(UsageError, match="those of option bodySchema"):
        replace(job, schema="a int", folder=str(tmp_path / "c")).run(spark)
