"""Pipelines whose folder is a table: what they promise stays the same, whatever is cut off when."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import descriptor_pb2

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer
from sprocket.schemas.choice import choose
from sprocket.spark.pipelines import Archive, Lag, Replay, Volume
from sprocket.spark.pipelines import archive as archives
from sprocket.spark.pipelines.lag import Sample
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.streams import StreamFailed
from sprocket.spark.pipelines.tables.table_layout import TableLayout
from tests.cli.parts import sprocket
from tests.spark.pipelines.shop import ORDERS, body_of, rows, topic_rows
from tests.spark.pipelines.tables.formats import FORMATS, by_its_library, cut
from tests.spark.pipelines.test_archive import _kill_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
everywhere = pytest.mark.parametrize("form", FORMATS)


def _keys(form: str, folder: str) -> list[str]:
    return sorted(row["key"] for row in by_its_library(form, folder))


@everywhere
def test_an_archive_that_is_cut_off_at_any_step_of_a_batch_holds_every_message_once(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    job = Archive(
        nameservers=shop,
        topics=("orders",),
        folder=str(tmp_path / "a"),
        form=form,
        batch_rows=6,
        compact_every=2,
    )
    steps = iter(
        [
            (TableLayout, "stage", "before"), (TableLayout, "commit", "before"),
            (TableLayout, "commit", "after"), (Batches, "_commit", "after"),
        ]
    )  # fmt: skip
    for owner, name, when in steps:
        with monkeypatch.context() as patch:
            cut(patch, owner, name, when)
            with pytest.raises(StreamFailed, match="the machine is gone"):
                job.run(spark)
        is_there = any(tmp_path.glob("a/_delta_log")) or any(tmp_path.glob("a/metadata"))
        found = Counter(_keys(form, job.folder) if is_there else [])
        assert not [key for key, count in found.items() if count > 1]
    done = job.run(spark)
    assert (done.total_rows, done.is_interrupted) == (ORDERS, False)
    assert _keys(form, job.folder) == sorted(f"o-{number}" for number in range(ORDERS))
    assert rows(archives.read(spark, job.folder), "key", "body") == sorted(
        (f"o-{number}", body_of(number)) for number in range(ORDERS)
    )
    assert job.run(spark).rows == 0


@everywhere
def test_a_mark_that_was_removed_after_a_commit_is_counted_again(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    job = Archive(nameservers=shop, topics=("orders",), folder=str(tmp_path / "a"), form=form)
    with monkeypatch.context() as patch:
        cut(patch, Batches, "_commit", "before", 0)
        with pytest.raises(StreamFailed, match="the machine is gone"):
            job.run(spark)
    assert not (tmp_path / "a" / "_sprocket" / "committed.json").exists()
    done = job.run(spark)
    assert (done.total_rows, len(_keys(form, job.folder))) == (ORDERS, ORDERS)


@everywhere
def test_json_columns_grow_with_the_schema_and_money_stays_exact(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    topic = f"money-{form}"

    def send(body: Any) -> None:
        with Producer("p", nameservers=shop) as producer:
            producer.send(Message(topic, json.dumps(body).encode(), keys=[str(body["id"])]))

    send({"id": 1, "amount": "0.10"})
    job = Archive(
        nameservers=shop,
        topics=(topic,),
        folder=str(tmp_path / "a"),
        form=form,
        body="json",
        schema="id int, amount decimal(20,2)",
        partition_by=("data.id", "date"),
    )
    assert job.run(spark).rows == 1
    send({"id": 2, "amount": "123456789012345678.90", "to": {"iban": "x"}})
    more = replace(job, schema="id int, amount decimal(20,2), `to` struct<iban: string>")
    assert more.run(spark).rows == 1
    found = {row["id"]: row["data"] for row in by_its_library(form, job.folder)}
    assert str(found[1]["amount"]) == "0.10"
    assert str(found[2]["amount"]) == "123456789012345678.90"
    assert (found[1]["to"], found[2]["to"]) == (None, {"iban": "x"})
    with pytest.raises(UsageError, match=r"another schema.*takes a schema with more"):
        replace(job, schema="id int").run(spark)
    with pytest.raises(UsageError, match=f"begun as {form}, by id, date, not as"):
        replace(job, partition_by=()).run(spark)


@everywhere
def test_decoded_bodies_are_columns_that_grow_with_their_schema(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    pytest.importorskip("jsonschema")
    topic, path = f"decoded-{form}", tmp_path / "order.json"
    fields: dict[str, Any] = {"id": {"type": "string", "minLength": 2}, "n": {"type": "integer"}}

    def schema(**more: Any) -> None:
        path.write_text(json.dumps({"required": ["id"], "properties": {**fields, **more}}))

    def send(*sent: str) -> None:
        with Producer("p", nameservers=shop) as producer:
            for body in sent:
                producer.send(Message(topic, body.encode()))

    schema()
    send('{"id":"o-1","n":3,"lines":[{"sku":"a"}]}', '{"id":"o"}', "no json")
    job = Archive(
        nameservers=shop, topics=(topic,), folder=str(tmp_path / "a"), form=form, body="decoded",
        partition_by=("data.id",), options=("bodyFormat=json", f"bodySchema={path}"),
    )  # fmt: skip
    done = job.run(spark)
    assert (done.rows, done.corrupt) == (3, 2)
    schema(lines={"type": "array", "items": {"properties": {"sku": {"type": "string"}}}})
    send('{"id":"o-2","lines":[{"sku":"b"}]}')
    assert job.run(spark).rows == 1
    schema(n={"type": "string"})
    send('{"id":"o-3","n":"4"}')  # a column keeps its type
    assert job.run(spark).corrupt == 1
    kept = by_its_library(form, job.folder)
    found = {row["id"]: row["data"] for row in kept if row["data"]}
    assert {name: (data["n"], data["lines"]) for name, data in found.items()} == {
        "o-1": (3, None), "o-2": (None, [{"sku": "b"}]),
    }  # fmt: skip
    misfits = {row["body_corrupt"] for row in kept} - {None}
    assert misfits == {b'{"id":"o"}', b"no json", b'{"id":"o-3","n":"4"}'}
    path.write_text('{"properties": {"a b": {"type": "string"}}}')
    with pytest.raises(UsageError, match="cannot have a column of the name 'a b'"):
        replace(job, folder=str(tmp_path / "b"), partition_by=()).run(spark)


@everywhere
def test_intervals_of_protobuf_are_texts_in_tables(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="job.proto", syntax="proto3")
    file.dependency.append("google/protobuf/duration.proto")
    fields = file.message_type.add(name="Job").field
    for name, number in (("took", 1), ("waits", 3)):  # once, and repeated
        fields.add(
            name=name, number=number, type=11, label=number, type_name=".google.protobuf.Duration"
        )
    (path := tmp_path / "job.desc").write_bytes(files.SerializeToString())
    codec, topic = choose("protobuf", schema=str(path)).codec(), f"jobs-{form}"
    seconds = timedelta(seconds=1.5)
    with Producer("p", nameservers=shop) as producer:
        producer.send(Message(topic, codec.encode({"took": seconds, "waits": [seconds]})))
    job = Archive(
        nameservers=shop, topics=(topic,), folder=str(tmp_path / "a"), form=form, body="decoded",
        options=("bodyFormat=protobuf", f"bodySchema={path}"),
    )  # fmt: skip
    assert job.run(spark).corrupt == 0
    (row,) = by_its_library(form, job.folder)
    assert row["data"] == {"took": "1.5s", "waits": ["1.5s"]}


def test_a_folder_keeps_its_format(spark: SparkSession, shop: str, tmp_path: Path) -> None:
    job = Archive(nameservers=shop, topics=("orders",), folder=str(tmp_path / "a"))
    job.run(spark)
    with pytest.raises(UsageError, match="begun as parquet, by topic, date, not as parquet, by t"):
        replace(job, partition_by=("tag",)).run(spark)
    with pytest.raises(UsageError, match="are for tables"):
        replace(job, compact_every=3).run(spark)
    with pytest.raises(UsageError, match="for tables of Iceberg"):
        replace(job, registered="a.b.c").run(spark)


def test_a_missing_library_is_named(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for form, library in (("delta", "deltalake"), ("iceberg", "pyiceberg")):
        monkeypatch.setitem(sys.modules, library, None)
        job = Archive(nameservers=shop, topics=("orders",), folder=str(tmp_path / "a"), form=form)
        with pytest.raises(UsageError, match=rf"{library}: pip install 'sprocketmq\[{form}\]'"):
            job.run(spark)
    assert not (tmp_path / "a").exists()


@everywhere
def test_parquet_may_be_partitioned_by_any_column_and_a_table_is_replayed(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    plain = Archive(
        nameservers=shop,
        topics=("orders",),
        folder=str(tmp_path / "plain"),
        partition_by=("properties.region", "tag"),
    )
    assert plain.run(spark).total_rows == ORDERS
    assert sorted(one.name for one in tmp_path.glob("plain/region=eu/*")) == ["tag=new", "tag=paid"]
    for name, why in (("nothing", "no column nothing to partition by"), ("body", "is binary")):
        with pytest.raises(UsageError, match=why):
            replace(plain, folder="c", partition_by=(name,)).run(spark)
    assert not (tmp_path / "c").exists()
    table = replace(plain, folder=str(tmp_path / "t"), form=form)
    assert table.run(spark).total_rows == ORDERS
    again = Replay(nameservers=shop, archive=table.folder, to=f"again-{form}")
    assert again.run(spark).rows == ORDERS
    assert rows(archives.read(spark, table.folder), "body") == topic_rows(
        spark, shop, f"again-{form}", "body"
    )


@everywhere
def test_counts_samples_and_offsets_are_tables_too(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    volume = Volume(nameservers=shop, topics=("orders",), folder=str(tmp_path / "v"), form=form)
    assert (volume.run(spark).messages, volume.run(spark).rows) == (ORDERS, 0)
    assert sum(row["messages"] for row in by_its_library(form, volume.folder or "")) == ORDERS
    with pytest.raises(UsageError, match="a table needs a folder"):
        replace(volume, folder=None).run(spark)
    lag = Lag(nameservers=shop, folder=str(tmp_path / "l"), form=form, rounds=0)
    at = 1_700_000_000_000
    for number in range(2):
        lag.write(spark, [Sample(at + number, "g", "orders", "broker-a", 0, 0, 50, 50, 0)])
    assert [(one.group, one.samples) for one in lag.run(spark).groups] == [("g", 2)]
    assert len(by_its_library(form, lag.folder)) == 2


def test_iceberg_in_a_catalog(spark: SparkSession, shop: str, tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: make test-lake")
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: make test-lake")
    base = tmp_path / "catalog.db"
    job = Archive(
        nameservers=shop,
        topics=("orders",),
        folder=str(tmp_path / "t"),
        form="iceberg",
        registered="shop.sales.orders",
        storage=(f"uri=sqlite:///{base}", "type=sql"),
        batch_rows=20,
    )
    assert job.run(spark).total_rows == ORDERS
    assert job.run(spark).rows == 0
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("shop", uri=f"sqlite:///{base}", type="sql")
    assert catalog.load_table("sales.orders").scan().to_arrow().num_rows == ORDERS
    assert sqlite3.connect(base).execute("SELECT count(*) FROM iceberg_tables").fetchone() == (1,)
    with pytest.raises(UsageError, match=r"catalog\.namespace\.table"):
        replace(job, folder=str(tmp_path / "n"), registered="orders").run(spark)
    with pytest.raises(UsageError, match="no catalog gone"):
        replace(job, folder=str(tmp_path / "n"), registered="gone.a.b", storage=()).run(spark)


@pytest.mark.timeout(900)
@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="takes minutes: SPROCKET_LONG=1 runs it"
)
@everywhere
def test_killed_at_random_times_it_equals_the_topic(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    topic, folder, chance = f"killed-{form}", tmp_path / "a", random.Random(11)
    with Producer("p", nameservers=shop) as producer:
        producer.send_many([Message(topic, b"x", keys=[f"{n}"]) for n in range(200)])
    words = ["pipeline", "run", "archive", "--topic", topic, "--to", str(folder), "--format", form]
    command = [sys.executable, "-m", "sprocket", *words, "--batch-rows", "4", "--nameserver", shop]
    quick = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    for _ in range(6):
        life = subprocess.Popen(
            [*command, "--master", "local[1]", "--compact-every", "5", "--conf", quick],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            before = len(list(folder.glob("data/*")))
            deadline = time.monotonic() + 120
            while len(list(folder.glob("data/*"))) < before + 2 and life.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(chance.random())
        finally:
            _kill_tree(life.pid)
            life.wait()
        keys = Counter(_keys(form, str(folder)))
        assert max(keys.values(), default=1) == 1
    outcome = sprocket(*command[3:])
    assert outcome.code == 0, outcome.err
    assert _keys(form, str(folder)) == sorted(str(n) for n in range(200))
