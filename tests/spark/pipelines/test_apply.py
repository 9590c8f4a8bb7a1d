"""Change data in topics becomes a table that equals the database, whatever is cut off when."""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer
from sprocket.spark.pipelines import Apply
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.streams import StreamFailed
from sprocket.spark.pipelines.tables.merge_layout import MergeLayout
from sprocket.spark.pipelines.tables.table_layout import TableLayout
from tests.cli.parts import sprocket
from tests.spark.pipelines.changes.bodies import Database, Sent, canal, encoded
from tests.spark.pipelines.tables.formats import FORMATS, by_its_library, cut
from tests.spark.pipelines.test_archive import _kill_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
everywhere = pytest.mark.parametrize("form", FORMATS)
STYLES = {"delta": "canal", "iceberg": "envelope"}


def _send(address: str, topic: str, messages: Iterable[Sent]) -> None:
    """Sends a key's messages to one queue, as Canal and Debezium do."""
    keys = {}
    made = []
    for sent in messages:
        made.append(Message(topic, sent.body, keys=[sent.keys] if sent.keys else []))
        keys[id(made[-1])] = sent.by
    with Producer("cdc", nameservers=address) as producer:
        producer.send_many(made, key_of=lambda message: str(keys[id(message)]))


def _rows(form: str, folder: str) -> dict[int, dict[str, Any]]:
    """The table by DuckDB, without the place of each row."""
    import duckdb
    import pyarrow as pa

    found = pa.Table.from_pylist(by_its_library(form, folder))
    with duckdb.connect() as base:
        base.register("found", found)
        rows = base.sql("SELECT * EXCLUDE (_sprocket) FROM found").to_arrow_table()
    rows = rows.to_pylist()
    assert len({row["id"] for row in rows}) == len(rows), "a key has one row"
    return {row["id"]: row for row in rows}


def _expected(database: Database) -> dict[int, dict[str, Any]]:
    return {
        number: {**row, "amount": Decimal(row["amount"])} for number, row in database.rows.items()
    }


@everywhere
def test_a_table_equals_the_database_whatever_is_cut_off_at_which_step(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    topic = f"changes-{form}"
    database = Database(7, STYLES[form], keys=30)
    _send(shop, topic, database.changes(60))
    _send(shop, topic, [Sent(b"no json", None, 1), Sent(b'{"x": 1}', None, 2)])
    job = Apply(
        nameservers=shop, topics=(topic,), folder=str(tmp_path / "t"), form=form, batch_rows=40
    )
    for owner, name in ((MergeLayout, "merge"), (TableLayout, "commit"), (Batches, "_commit")):
        with monkeypatch.context() as patch:
            cut(patch, owner, name, "after", 0)
            with pytest.raises((StreamFailed, OSError), match="the machine is gone"):
                job.run(spark)
    done = job.run(spark)
    assert _rows(form, job.folder) == _expected(database)
    assert (done.rows, done.key, done.total_aside) == (len(database.rows), ("id",), 2)
    aside = spark.read.parquet(f"{job.folder}/_sprocket/aside")
    assert sorted(bytes(row["body"]) for row in aside.collect()) == [b"no json", b'{"x": 1}']
    _send(shop, topic, database.changes(40))
    again = job.run(spark)
    assert _rows(form, job.folder) == _expected(database)
    assert (again.messages, again.totals["older"]) == (40, 0)
    facts = again.report().facts
    assert (facts["messages"], facts["rows in the table"]) == (40, len(database.rows))
    assert job.run(spark).messages == 0


def test_columns_are_added_keys_move_and_settings_are_checked(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed: make test-lake")

    def send(*messages: dict[str, Any]) -> None:
        _send(shop, "moves", [Sent(encoded(one), None, 0) for one in messages])

    row = {"id": "1", "name": "a", "amount": "0.10", "notes": None}
    send(
        canal("INSERT", [row, {**row, "id": "2"}, {**row, "id": "3"}]),
        canal("INSERT", [row], table="users", pkNames=["id"]),
    )
    job = Apply(nameservers=shop, topics=("moves",), folder=str(tmp_path / "t"), form="delta")
    with pytest.raises(StreamFailed, match=r"changes of shop\.orders, shop\.users: choose one"):
        job.run(spark)
    job = replace(job, tables=("shop.orders",))
    done = job.run(spark)
    assert (done.totals["inserted"], done.aside) == (3, (("another table", 1),))
    kinds = {**canal("INSERT", [])["mysqlType"], "pa`i.d": "tinyint(1)", "at": "datetime"}
    moved = {**row, "id": "9", "pa`i.d": "1", "at": "2030-01-31 10:00:00"}
    send(
        canal("UPDATE", [moved], [{"id": "1"}], mysqlType=kinds),
        canal("DELETE", [{**row, "id": "2"}]),
        canal("UPDATE", [{"id": "3", "name": "b"}], [{"name": "a"}]),
        canal("UPDATE", [{**row, "id": "3", "amount": "1.555"}], [{"amount": "0.10"}]),
    )
    done = job.run(spark)
    found = _rows("delta", job.folder)
    assert {key: (one["name"], one["pa`i.d"]) for key, one in found.items()} == {
        3: ("b", None), 9: ("a", 1),
    }  # fmt: skip
    assert found[9]["at"] == datetime.datetime(2030, 1, 31, 10)
    assert found[3]["amount"] == Decimal("0.10"), "what a message does not say stays"
    figures = {name: done.totals[name] for name in ("inserted", "updated", "deleted", "aside")}
    assert figures == {"inserted": 1, "updated": 1, "deleted": 2, "aside": 1}
    send(canal("UPDATE", [{"id": "9", "name": "c"}], [{"name": "a"}]))
    assert job.run(spark).totals["updated"] == 1
    assert _rows("delta", job.folder)[9] == {**found[9], "name": "c"}
    for wrong, why in (
        ({"key": ("name",)}, "has the key id: give a new folder"),
        ({"schema": "id int"}, "has the column id bigint: a schema may add columns only"),
        ({"schema": "id array<int>"}, "column id cannot be array<int>"),
        ({"schema": "name string", "key": ("id",)}, "the key id is no column of the schema"),
        ({"form": "iceberg"}, "was begun as delta"),
    ):
        with pytest.raises(UsageError, match=why):
            replace(job, **wrong).run(spark)  # type: ignore[arg-type]


@pytest.mark.timeout(3600)
@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="takes minutes: SPROCKET_LONG=1 runs it"
)
@everywhere
def test_killed_at_random_times_it_equals_the_database(
    spark: SparkSession, shop: str, tmp_path: Path, form: str
) -> None:
    topic, folder, chance = f"killed-changes-{form}", tmp_path / "t", random.Random(13)
    database = Database(11, "plain", keys=60)
    _send(shop, topic, database.changes(600))
    words = ["pipeline", "run", "apply", "--topic", topic, "--to", str(folder), "--format", form]
    words += ["--schema", "id bigint, name string, amount decimal(20,2), notes string"]
    command = [sys.executable, "-m", "sprocket", *words, "--batch-rows", "20", "--nameserver", shop]
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
            while len(list(folder.glob("data/*"))) < before + 2 and life.poll() is None:
                time.sleep(0.02)
            time.sleep(3 * chance.random())
        finally:
            _kill_tree(life.pid)
            life.wait()
    outcome = sprocket(*command[3:])
    assert outcome.code == 0, outcome.err
    assert _rows(form, str(folder)) == _expected(database)
