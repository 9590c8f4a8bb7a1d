"""Messages of Canal, as its flat messages are documented."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sprocket.spark.pipelines.changes.canal import content, is_canal, mysql_type
from sprocket.spark.pipelines.changes.json_values import UnfitMessage, parsed
from tests.spark.pipelines.changes.bodies import AT_MS, canal, encoded


def _read(message: dict[str, Any]) -> Any:
    found = parsed(encoded(message))
    assert is_canal(found)
    return content(found)


def test_rows_of_a_statement_are_changes_in_order() -> None:
    rows = [{"id": "1", "name": "a", "amount": "0.10"}, {"id": "2", "name": None}]
    one, two = _read(canal("INSERT", rows)).changes
    assert (one.operation, one.source, one.changed_ms) == ("upsert", "shop.orders", AT_MS)
    assert (one.key, one.before) == (("id",), {})
    assert one.values == {"id": "1", "name": "a", "amount": "0.10"}
    assert one.types == {
        "id": "bigint",
        "name": "string",
        "amount": "decimal(20,2)",
        "notes": "string",
    }
    assert two.values == {"id": "2", "name": None}


def test_an_update_tells_what_the_row_was() -> None:
    (change,) = _read(
        canal("UPDATE", [{"id": "9", "name": "b"}], [{"id": "1", "name": None}])
    ).changes
    assert (change.operation, change.values) == ("upsert", {"id": "9", "name": "b"})
    assert change.before == {"id": "1", "name": None}


def test_a_deletion_has_the_row_that_was() -> None:
    (change,) = _read(canal("DELETE", [{"id": "1", "name": "a"}])).changes
    assert (change.operation, change.values["id"]) == ("delete", "1")


def test_bytes_are_characters_of_latin_1_and_dates_of_zeros_are_null() -> None:
    kinds = {"raw": "varbinary(9)", "day": "date", "at": "datetime(3)"}
    row = {"raw": "\x00ÿ", "day": "0000-00-00", "at": "0000-00-00 00:00:00.000"}
    (change,) = _read(canal("INSERT", [row], mysqlType=kinds)).changes
    assert change.values == {"raw": base64.b64encode(b"\x00\xff").decode(), "day": None, "at": None}
    with pytest.raises(UnfitMessage, match="ISO 8859-1"):
        _read(canal("INSERT", [{"raw": "日"}], mysqlType=kinds))


def test_without_mysqls_type_that_of_jdbc_counts() -> None:
    (change,) = _read(canal("INSERT", [{"id": "1"}], mysqlType=None)).changes
    assert change.types == {"id": "bigint", "name": "string", "amount": "string", "notes": "string"}


@pytest.mark.parametrize(
    "message",
    [
        canal("ALTER", None, isDdl=True, sql="ALTER TABLE orders ADD COLUMN x int"),
        canal("QUERY", None, sql="UPDATE orders SET x = 1"),
        canal("INSERT", []),
        canal("UPDATE", None),
    ],
)
def test_what_changes_no_row_is_left_out(message: dict[str, Any]) -> None:
    found = _read(message)
    assert (found.changes, found.left_out) == ((), "DDL and statements")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (canal("TRUNCATE", None, isDdl=True), "truncation: of shop.orders"),
        (canal("MERGE", [{}]), "no type 'MERGE'"),
        (canal("INSERT", {"id": "1"}), "lists of equal length"),
        (canal("UPDATE", [{}], [{}, {}]), "lists of equal length"),
        (canal("INSERT", ["x"]), "are objects"),
        (canal("INSERT", [{}], pkNames="id"), "pkNames is a list"),
        (canal("INSERT", [{}], mysqlType=["x"]), "are objects"),
    ],
)
def test_what_cannot_be_applied_is_refused(message: dict[str, Any], why: str) -> None:
    with pytest.raises(UnfitMessage, match=why):
        _read(message)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("int(10) unsigned zerofill", "bigint"),
        ("INT UNSIGNED", "bigint"),
        ("mediumint(8) unsigned", "int"),
        ("tinyint(1)", "tinyint"),
        ("bigint(20) unsigned", "decimal(20,0)"),
        ("decimal(10)", "decimal(10,0)"),
        ("decimal(10,2) unsigned", "decimal(10,2)"),
        ("decimal(65,30)", "string"),
        ("float(7,4)", "double"),
        ("bit(1)", "boolean"),
        ("bit(8)", "decimal(20,0)"),
        ("datetime(6)", "timestamp_ntz"),
        ("time", "string"),
        ("year(4)", "int"),
        ("enum('a)','b')", "string"),
        ("json", "string"),
        ("longblob", "binary"),
        ("?", "string"),
        ("decimal(a,b)", "string"),
    ],
)
def test_types_of_mysql(said: str, kind: str) -> None:
    assert mysql_type(said) == kind
