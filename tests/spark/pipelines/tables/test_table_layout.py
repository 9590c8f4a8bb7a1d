"""Tables of each format through the layout: once, in partitions, merged, with more columns."""

from __future__ import annotations

import datetime
import importlib.util
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.tables import files, table_layout
from sprocket.spark.pipelines.tables.opened import table_of
from sprocket.spark.pipelines.tables.table import TableConflict
from sprocket.spark.pipelines.tables.table_layout import TableLayout
from tests.spark.pipelines.tables.formats import FORMATS, by_its_library, newest_metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("form", FORMATS)]
DAY = datetime.date(2030, 1, 31)
HOSTILE = [
    "../../etc", "a/b", "x=1", "%2F", "", None, "é\x00\n", "__HIVE_DEFAULT_PARTITION__", "l" * 6000,
]  # fmt: skip


def _layout(spark: SparkSession, form: str, path: Path, *by: str, every: int = 0) -> TableLayout:
    folder = Folder(spark, str(path))
    table = table_of(form, folder, by, {})
    return TableLayout(spark, folder, table, by=by, compact_every=every)


def _rows(spark: SparkSession, *numbers: int) -> DataFrame:
    rows = [(number, f"text {number}", DAY) for number in numbers]
    return spark.createDataFrame(rows, "n bigint, text string, day date")


def _put(layout: TableLayout, frame: DataFrame, number: int) -> None:
    layout.commit(layout.stage(frame, number), "q", number)


def _numbers(form: str, folder: Path) -> list[int]:
    return sorted(row["n"] for row in by_its_library(form, folder))


def test_a_batch_of_two_tries_is_there_once_and_the_loser_is_told(
    spark: SparkSession, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (_layout(spark, form, tmp_path / "t", "day") for _ in range(2))
    assert first.last("q") == -1
    lost = first.stage(_rows(spark, 1, 2), 0)
    _put(second, _rows(spark, 1, 2), 0)
    assert (first.last("q"), first.last("other")) == (0, -1)
    assert _numbers(form, tmp_path / "t") == [1, 2]
    assert len(list((tmp_path / "t" / "data" / "0").iterdir())) == 1, "the lost try is removed"
    # One that prepared its commit beside another's of the same batch gets nothing in.
    table = first._table
    opened = table._open()  # type: ignore[attr-defined]
    staged = first.stage(_rows(spark, 3), 1)
    _put(second, _rows(spark, 3), 1)
    monkeypatch.setattr(table, "_open", lambda: opened)
    monkeypatch.setattr(table, "_opened_for", lambda columns: opened, raising=False)
    with pytest.raises(TableConflict, match="at the same"):
        table.append(staged.files, staged.columns, "q", 1)
    assert _numbers(form, tmp_path / "t") == [1, 2, 3]
    assert lost.files[0].rows


def test_a_commit_beside_another_of_its_batch_or_its_files_is_refused(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    first, second = (_layout(spark, form, tmp_path / "t") for _ in range(2))
    lost = first.stage(_rows(spark, 1), 0)
    _put(second, _rows(spark, 1), 0)
    with pytest.raises(TableConflict, match="batch 0 is in it"):
        first.commit(lost, "q", 0)
    old = first._table.files()
    staged = first.stage(_rows(spark, 2, 3), 1)
    first.commit(staged._replace(instead_of=old), "q", 1)
    assert _numbers(form, tmp_path / "t") == [2, 3]
    with pytest.raises(TableConflict, match="is gone"):
        first._table.append(staged.files, staged.columns, "q", 2, old)
    with pytest.raises(TableConflict, match="is gone"):
        first._table.exchange(old, staged.files)
    assert first.last("q") == 1
    assert _numbers(form, tmp_path / "t") == [2, 3]
    first._table.append([], staged.columns, "q", 2, first._table.files())
    assert (first.last("q"), _numbers(form, tmp_path / "t")) == (2, [])


def test_whatever_a_partition_is_called_no_path_is_made_of_it(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(
        [(at, name, None if name is None else len(name)) for at, name in enumerate(HOSTILE)],
        "n bigint, name string, length int",
    )
    layout = _layout(spark, form, tmp_path / "in" / "t", "name", "length")
    _put(layout, frame, 0)
    assert [one.name for one in tmp_path.iterdir()] == ["in"]
    assert sorted(one.name for one in (tmp_path / "in" / "t" / "data").iterdir()) == ["0"]
    # In Delta's log an empty text of a partition is null, by its protocol.
    wanted = [None if form == "delta" and not name else name for name in HOSTILE]
    found = by_its_library(form, tmp_path / "in" / "t")
    assert [row["name"] for row in sorted(found, key=lambda row: row["n"])] == wanted
    again = layout.read(0).orderBy("n").collect()
    assert [row["name"] for row in again] == HOSTILE


def test_too_many_partitions_are_refused_and_leave_nothing(
    spark: SparkSession, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILES_MAX", 3)
    layout = _layout(spark, form, tmp_path / "t", "n")
    with pytest.raises(UsageError, match="partition by columns with few values"):
        layout.stage(_rows(spark, 1, 2, 3, 4), 0)
    assert not list(tmp_path.glob("t/data/0/*"))


def test_merging_changes_no_row_and_goes_on_beside_a_reader(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    layout = _layout(spark, form, tmp_path / "t", "day", every=3)
    _put(layout, _rows(spark, 0), 0)
    _put(layout, _rows(spark, 1), 1)
    reader = layout.read(1)
    before = _numbers(form, tmp_path / "t")
    _put(layout, _rows(spark, 2), 2)
    assert len(layout._table.files()) == 1
    assert layout.last("q") == 2, "merging forgets no batch"
    assert sorted(row["n"] for row in reader.collect()) == before == [0, 1]
    assert _numbers(form, tmp_path / "t") == [0, 1, 2]
    _put(layout, _rows(spark, 3), 3)
    assert sorted(row["n"] for row in layout.read(3).collect()) == [0, 1, 2, 3]


def test_files_that_no_state_has_any_more_are_removed(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    layout = _layout(spark, form, tmp_path / "t")
    for number in range(3):
        _put(layout, _rows(spark, number), number)
    (tmp_path / "t" / "_sprocket").mkdir()
    (tmp_path / "t" / "_sprocket" / "mine").write_text("kept")
    assert layout.compact() == 3
    there = len(list(tmp_path.glob("t/data/**/*.parquet")))
    assert there == 4, "nothing is removed before a week has passed"
    assert layout._table.drop_unused(datetime.timedelta(0)) >= 3
    assert len(list(tmp_path.glob("t/data/**/*.parquet"))) == 1
    assert _numbers(form, tmp_path / "t") == [0, 1, 2]
    assert (tmp_path / "t" / "_sprocket" / "mine").exists()


def test_new_columns_are_added_also_inside_of_others(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    layout = _layout(spark, form, tmp_path / "t")
    old = spark.createDataFrame([(1, (2,))], "n bigint, data struct<a: int>")
    new = spark.createDataFrame(
        [(3, (4, "five"), Decimal("6.5"))],
        "n bigint, data struct<a: int, b: string>, price decimal(5,2)",
    )
    _put(layout, old, 0)
    _put(layout, new, 1)
    _put(layout, old, 2)
    rows = sorted(by_its_library(form, tmp_path / "t"), key=lambda row: (row["n"], row["batch"]))
    assert [(row["n"], row["data"], row["price"] and str(row["price"])) for row in rows] == [
        (1, {"a": 2, "b": None}, None),
        (1, {"a": 2, "b": None}, None),
        (3, {"a": 4, "b": "five"}, "6.50"),
    ]
    layout.compact()
    assert layout.read(2).where("data.b = 'five'").count() == 1
    wrong = spark.createDataFrame([("x",)], "n string")
    with pytest.raises(UsageError, match="column n is int64 in the table, and would be string"):
        _put(layout, wrong, 3)


def test_what_another_engine_added_is_read_too_or_left_to_it(
    spark: SparkSession, form: str, tmp_path: Path
) -> None:
    layout = _layout(spark, form, tmp_path / "t")
    _put(layout, _rows(spark, 1), 0)
    if form == "iceberg":
        opened = layout._table._open()  # type: ignore[attr-defined]
        opened.append(opened.scan().to_arrow())
        assert [row["n"] for row in layout.read(0).collect()] == [1, 1]
        return
    # Files of Delta's other writers lack partition columns: they are only in its log.
    import pyarrow as pa
    from deltalake import write_deltalake

    rows = by_its_library(form, tmp_path / "t")
    table = pa.Table.from_pylist(rows, schema=layout._table.schema())
    write_deltalake(tmp_path / "t", table, mode="append")
    with pytest.raises(UsageError, match="another engine"):
        layout.read(0)


@pytest.mark.skipif(importlib.util.find_spec("polars") is None, reason="make test-lake: polars")
@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="make test-lake: duckdb")
def test_polars_and_duckdb_read_it(spark: SparkSession, form: str, tmp_path: Path) -> None:
    """DuckDB's own extensions for both formats are downloads, so it reads through Arrow."""
    import duckdb
    import polars

    frame = spark.sql(
        "SELECT id AS n, concat('../', id % 2) AS name, date'2030-01-31' AS day, "
        "timestamp'2030-01-31 12:30:00.000001' AS at, cast(id AS decimal(20,4)) AS price, "
        "map('k', 'v') AS pairs, struct(id AS a, array(1, null) AS many) AS data FROM range(8)"
    )
    layout = _layout(spark, form, tmp_path / "t", "name", "day")
    _put(layout, frame, 0)
    _put(layout, frame, 1)
    layout.compact()
    if form == "delta":
        lazy = polars.scan_delta(str(tmp_path / "t"))
    else:
        lazy = polars.scan_iceberg(newest_metadata(tmp_path / "t"))
    assert lazy.collect().height == 16
    some = lazy.filter((polars.col("name") == "../1") & (polars.col("n") > 4)).collect()
    assert sorted(some["n"].to_list()) == [5, 5, 7, 7]
    assert lazy.filter(polars.col("day") == DAY).collect().height == 16
    assert lazy.filter(polars.col("day") != DAY).collect().height == 0
    assert {str(one) for one in some["price"].to_list()} == {"5.0000", "7.0000"}
    at = some["at"].to_list()[0]
    assert (at.microsecond, some["data"].to_list()[0]["many"]) == (1, [1, None])
    rows: Any = lazy.collect().to_arrow()
    con = duckdb.connect()
    con.register("t", rows)
    assert con.execute("SELECT count(*), sum(n) FROM t WHERE name = '../0'").fetchone() == (8, 24)


def test_merging_gives_way_to_another_writer(
    spark: SparkSession, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = _layout(spark, form, tmp_path / "t")
    _put(layout, _rows(spark, 1), 0)
    _put(layout, _rows(spark, 2), 1)

    def lost(*_: Any) -> None:
        raise TableConflict("another was faster")

    monkeypatch.setattr(layout._table, "exchange", lost)
    assert layout.compact() == 0
    assert _numbers(form, tmp_path / "t") == [1, 2]
    assert table_layout.KEPT.days == 7
