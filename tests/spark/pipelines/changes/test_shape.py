"""The columns and the key of a table, as messages tell them."""

from __future__ import annotations

import json

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.changes import shape as shapes
from sprocket.spark.pipelines.changes.shape import RowShape, SeenColumn


def _seen(*columns: tuple[str, str], source: str = "shop.orders") -> list[SeenColumn]:
    return [SeenColumn(source, ("id",), name, kind) for name, kind in columns]


def _grown(shape: RowShape, seen: list[SeenColumn]) -> RowShape:
    return shape.grown(seen, takes_any_source=False)


def test_columns_and_key_are_learnt_and_keep_their_type() -> None:
    first = _grown(RowShape(), _seen(("id", "bigint"), ("name", "string"), ("later", "")))
    assert (first.columns, first.key) == ({"id": "bigint", "name": "string"}, ("id",))
    assert first.source == "shop.orders"
    more = _grown(first, _seen(("name", "int"), ("later", "date"), ("id", "string")))
    assert list(more.columns.items()) == [("id", "bigint"), ("name", "string"), ("later", "date")]
    assert RowShape.from_json(json.loads(json.dumps(more.as_json()))) == more
    with pytest.raises(UsageError, match="not ours"):
        RowShape.from_json({"columns": []})


def test_columns_that_a_table_cannot_have_are_refused() -> None:
    hostile = ["a b", "NAME", "", "x" * 300, "\ud800", "_sprocket", "_Sprocket", "a,b"]
    found = _grown(RowShape(), _seen(("name", "string"), *((name, "int") for name in hostile)))
    assert list(found.columns) == ["name"]
    assert set(found.refused) == set(hostile)
    assert found.refused["NAME"] == "it differs from name by capitals only"


def test_columns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "COLUMNS_MAX", 3)
    found = _grown(RowShape(), _seen(*((f"c{n}", "int") for n in range(10))))
    assert (len(found.columns), len(found.refused)) == (3, 3)


def test_one_table_of_the_database_is_chosen_or_several_are_named() -> None:
    both = [*_seen(("id", "int")), *_seen(("id", "int"), ("u", "int"), source="shop.users")]
    with pytest.raises(UsageError, match=r"of shop\.orders, shop\.users: choose one"):
        _grown(RowShape(), both)
    assert "u" not in _grown(RowShape(source="shop.orders"), both).columns
    whole = RowShape().grown(both, takes_any_source=True)
    assert (list(whole.columns), whole.source) == (["id", "u"], "")


def test_given_columns_are_all() -> None:
    given = RowShape({"id": "int"}, is_given=True)
    found = _grown(given, _seen(("id", "bigint"), ("name", "string")))
    assert (found.columns, found.key, found.source) == ({"id": "int"}, ("id",), "shop.orders")
