"""Messages of several queues in a table: which change of a key counts, by offsets and by times."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: make test-lake")

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.changes import frames
from sprocket.spark.pipelines.changes.rows import ChangeReader
from sprocket.spark.pipelines.changes.shape import PLACE
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.tables.merge_layout import MergeLayout, adaptive
from sprocket.spark.pipelines.tables.opened import table_of
from tests.spark.pipelines.changes.bodies import AT_MS, Database, canal, encoded
from tests.spark.pipelines.changes.test_rows import SHAPE, applied, as_table
from tests.spark.pipelines.tables.formats import by_its_library

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
#: Queue, offset, keys, body.
Line = tuple[int, int, str | None, bytes]
_AT = datetime.datetime(2030, 1, 31, tzinfo=datetime.UTC)


class _Table:
    """A table to which batches of messages are applied, without a broker."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._path = str(folder)
        place = Folder(session, self._path)
        self._layout = MergeLayout(session, place, table_of("delta", place, (), {}), by=())
        self._number = 0

    def apply(self, lines: list[Line]) -> dict[str, int]:
        """What was counted."""
        given = [("t", "broker-a", *line, _AT) for line in lines]
        frame = self._session.createDataFrame(given, frames.COLUMNS)
        with adaptive(self._session):
            found = frames.effects_of(frame, ChangeReader(), SHAPE)
            batch = frames.folded(found, SHAPE)
            staged = self._layout.merge(batch, self._number, key=SHAPE.key, place=PLACE)
        self._layout.commit(staged, "q", self._number)
        self._number += 1
        return dict(staged.totals)

    def rows(self) -> dict[int, dict[str, Any]]:
        found = by_its_library("delta", self._path)
        places = {row["id"]: row.pop(PLACE) for row in found}
        assert len(places) == len(found)
        return {row["id"]: row for row in found}


def _line(number: int, queue: int, offset: int, at_ms: int, kind: str, **row: Any) -> Line:
    made = canal(kind, [{"id": str(number), **row}], es=AT_MS + at_ms)
    return queue, offset, None, encoded(made)


def test_a_history_in_any_order_of_reading_becomes_what_the_database_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    database, chance = Database(3, "envelope", keys=50), random.Random(3)
    sent = database.changes(400)
    lines = [(one.by % 4, at, one.keys, one.body) for at, one in enumerate(sent)]
    table = _Table(spark, tmp_path / "t")
    counted = table.apply(chance.sample(lines, len(lines)))
    assert table.rows() == applied(sent) == as_table(database.rows)
    assert (counted["inserted"], counted["split"]) == (len(database.rows), 0)


def test_a_queue_orders_by_offset_and_several_queues_by_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _Table(spark, tmp_path / "t")
    counted = table.apply(
        [
            # In three queues' order by time the last one is of the lowest offset of its queue.
            _line(1, 0, 9, 5, "INSERT", name="older", notes="n"),
            _line(1, 1, 2, 7, "UPDATE", name="newer"),
            _line(1, 0, 8, 9, "UPDATE", name="last"),
            *(_line(number, 0, 100 + number, 9, "INSERT", name="was") for number in range(2, 7)),
        ]
    )
    rows = table.rows()
    assert (rows[1]["name"], rows[1]["notes"], rows[2]["name"]) == ("last", "n", "was")
    figures = {name: counted[name] for name in ("inserted", "split", "unsent")}
    assert figures == {"inserted": 6, "split": 1, "unsent": 6}
    counted = table.apply(
        [
            _line(2, 0, 102, 20, "UPDATE", name="read before"),
            _line(3, 1, 3, 1, "DELETE"),  # of another queue, and before the row by time
            _line(4, 0, 200, 1, "UPDATE", name="later by offset"),
            _line(5, 0, 201, 10, "DELETE"),
            _line(5, 0, 202, 10, "INSERT", notes="alone"),
            _line(6, 1, 4, 10, "DELETE"),  # of another queue, and after the row by time
        ]
    )
    rows = table.rows()
    assert {number: row["name"] for number, row in rows.items()} == {
        1: "last", 2: "was", 3: "was", 4: "later by offset", 5: None,
    }  # fmt: skip
    assert rows[5]["notes"] == "alone"
    figures = {name: counted[name] for name in ("updated", "deleted", "older", "split", "unsent")}
    assert figures == {"updated": 2, "deleted": 1, "older": 2, "split": 2, "unsent": 1}


def test_given_columns_are_plain(spark: SparkSession) -> None:
    shape = frames.given_shape("id bigint, amount decimal(20,2), at timestamp_ntz", ["id"])
    assert shape.columns == {"id": "bigint", "amount": "decimal(20,2)", "at": "timestamp_ntz"}
    for ddl, why in (
        ("id map<int,int>", "cannot be map<int,int>"),
        ("`a b` int", "cannot have a column of the name 'a b'"),
        ("_sprocket int", "another column _sprocket"),
        ("other int", "the key id is no column of the schema: other"),
        ("id bigint,", "no DDL text"),
    ):
        with pytest.raises(UsageError, match=why):
            frames.given_shape(ddl, ["id"])
