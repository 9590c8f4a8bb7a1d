"""What messages do to rows, in pure functions, against a database that sends its changes."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sprocket.spark.pipelines.changes.rows import (
    ChangeReader,
    RowEffect,
    effects,
    seen_columns,
)
from sprocket.spark.pipelines.changes.shape import RowShape
from tests.spark.pipelines.changes.bodies import (
    Database,
    Sent,
    canal,
    debezium,
    debezium_key,
    encoded,
)

STYLES = ("canal", "envelope", "plain")
SCHEMA = {"id": "bigint", "name": "string", "amount": "decimal(20,2)", "notes": "string"}
SHAPE = RowShape(SCHEMA, ("id",), "shop.orders")
READER = ChangeReader()


def _effects(body: Any, keys: str | None = None, **more: Any) -> list[RowEffect]:
    shape, reader = more.get("shape", SHAPE), more.get("reader", READER)
    raw = body if isinstance(body, bytes) else encoded(body)
    return list(effects(raw, keys, reader, shape))


def applied(messages: list[Sent], shape: RowShape = SHAPE) -> dict[int, dict[str, Any]]:
    """A table after messages, by the plainest reading of what they do."""
    rows: dict[int, dict[str, Any]] = {}
    for sent in messages:
        for one in effects(sent.body, sent.keys, READER, shape):
            assert one.effect in ("upsert", "delete"), one.reason
            number = one.values["id"]
            before = rows.pop(number, {})
            if one.effect == "upsert":
                kept = {name: before.get(name) for name in one.absent}
                rows[number] = {**kept, **one.values}
    return rows


def as_table(rows: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The rows of a database with an amount that is a number."""
    return {key: {**row, "amount": Decimal(row["amount"])} for key, row in rows.items()}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(STYLES))
def test_the_table_is_what_the_database_has(seed: int, style: str) -> None:
    database = Database(seed, style)
    messages = database.changes(60)
    assert applied(messages) == as_table(database.rows)
    shape = RowShape()
    for sent in messages:
        seen = list(seen_columns(sent.body, sent.keys, READER))
        shape = shape.grown(seen, takes_any_source=False)
    assert (shape.key, set(shape.columns)) == (("id",), set(SCHEMA))


def test_an_update_of_the_key_deletes_the_old_row() -> None:
    found = _effects(canal("UPDATE", [{"id": "9", "name": "b"}], [{"id": "1"}]))
    assert [(one.effect, one.values["id"]) for one in found] == [("delete", 1), ("upsert", 9)]
    assert found[1].absent == ("amount", "notes")
    same = _effects(canal("UPDATE", [{"id": "1"}], [{"id": "01"}]))
    assert [one.effect for one in same] == ["upsert"], "the key is compared by its value"
    by_name = ChangeReader(key=("name",))
    message = debezium("u", {"id": 1, "name": "a"}, {"id": 1, "name": "b"})
    shape = RowShape(SCHEMA, ("name",))
    found = _effects(message, debezium_key(1), reader=by_name, shape=shape)
    assert [(one.effect, one.values["name"]) for one in found] == [("delete", "a"), ("upsert", "b")]
    unknown = debezium("u", {"id": 1, "name": None}, {"id": 1, "name": "b"})
    assert [one.effect for one in _effects(unknown, reader=by_name, shape=shape)] == ["upsert"]


def test_a_bad_row_of_a_message_keeps_none_of_the_others_back() -> None:
    found = _effects(canal("INSERT", [{"id": "1"}, {"id": "x"}, {"id": "3"}]))
    assert [one.effect for one in found] == ["upsert", "aside", "upsert"]
    assert found[1].reason == "type: 'id' is bigint, and cannot be 'x'"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no json", "no JSON: Expecting value"),
        (b"[1]", "unknown message: neither"),
        ({"hello": "world"}, "unknown message: neither"),
        (canal("INSERT", [{"id": "1"}], table="users"), "another table: 'shop.users'"),
        (canal("INSERT", [{"id": "1"}], pkNames=None), "no key: neither the message nor --key"),
        (
            canal("INSERT", [{"id": "1"}], pkNames=["a", "id"]),
            "no key: the message's is ('a', 'id')",
        ),
        (canal("INSERT", [{"id": None}]), "no key: 'id' is not in it, or null"),
        (canal("INSERT", [{"id": "1", "more": "x"}]), "new column: 'more' cannot be in the table"),
        (canal("TRUNCATE", None), "truncation: of shop.orders"),
        (canal("INSERT", [{"id": "1", "name": "\ud800"}]), "type: 'name' is string"),
    ],
)
def test_what_cannot_be_applied_says_why(body: Any, reason: str) -> None:
    (found,) = _effects(body)
    assert found.effect == "aside"
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("body", [b"", b"null", {"payload": None}])
def test_tombstones_are_left_out(body: Any) -> None:
    (found,) = _effects(body)
    assert (found.effect, found.reason) == ("left out", "tombstones")


def test_tables_are_chosen_by_name_and_pattern() -> None:
    reader = ChangeReader(sources=("shop.o*", "other.users"))
    shape = RowShape(SCHEMA, ("id",))
    message = canal("INSERT", [{"id": "1"}])
    assert [one.effect for one in _effects(message, reader=reader, shape=shape)] == ["upsert"]
    other = {**message, "table": "users"}
    assert [one.effect for one in _effects(other, reader=reader, shape=shape)] == ["aside"]
    assert not list(seen_columns(encoded(other), None, reader))


def test_given_columns_leave_others_out() -> None:
    shape = RowShape({"id": "int"}, ("id",), is_given=True)
    (found,) = _effects(canal("INSERT", [{"id": "1", "name": "x"}]), shape=shape)
    assert (found.effect, found.values) == ("upsert", {"id": 1})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "database", "table", "type", "isDdl", "old", "pkNames", "mysqlType", "op",
                 "payload", "schema", "fields", "field", "after", "before", "source", "id"]
            ),
            inner,
            max_size=6,
        ),
        max_leaves=20,
    ),
    st.text(max_size=20),
)  # fmt: skip
def test_no_message_ends_in_an_error(body: Any, keys: str) -> None:
    raw = json.dumps(body).encode()
    assert _effects(raw, keys)
    assert _effects(raw, json.dumps(body))
    list(seen_columns(raw, keys, READER))


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(["", "x", "\ud800", "\0", "0000-00-00", 0, -1, 10**25, 1e300, "id"])
    | st.integers()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "a", "\ud800", "name", "type"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def _replaced(value: Any, draw: st.DrawFn) -> Any:
    """A value of JSON, of which a part, perhaps all, is something else."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 5)):
        at = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        made = copy.copy(value)
        made[at] = _replaced(value[at], draw)
        return made
    return draw(_ANYTHING)


@st.composite
def _strange(draw: st.DrawFn) -> tuple[bytes, str]:
    style, number = draw(st.sampled_from(STYLES)), draw(st.integers(0, 19))
    sent = Database(1, style).changes(20)[number]
    body = json.loads(sent.body or b"null")
    key = json.loads(sent.keys or "null")
    if draw(st.booleans()):
        body = _replaced(body, draw)
    else:
        key = _replaced(key, draw)
    return json.dumps(body).encode(), json.dumps(key)


@settings(max_examples=150, deadline=None)
@given(_strange())
@example((b'{"database": "d", "table": "t", "type": "INSERT", "data": true}', ""))
@example(
    (
        encoded(debezium("c", None, {"id": 1}, enveloped=False)),
        '{"schema": {"fields": [{"field": "id", "name": []}]}, "payload": {"id": 1}}',
    )
)
def test_no_message_stops_the_others(message: tuple[bytes, str]) -> None:
    """Whatever it is, it is applied, left out or set aside, and Arrow takes what is told of it."""
    body, keys = message
    for one in effects(body, keys, ChangeReader(sources=("*",)), SHAPE):
        pa.array([one.reason, *one.absent], pa.string())
    for column in seen_columns(body, keys, READER):
        pa.array([column.source, column.name, column.kind, *column.key], pa.string())
