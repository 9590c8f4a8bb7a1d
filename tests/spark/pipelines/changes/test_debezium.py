"""Messages of Debezium, as the pages of its connectors show them."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from typing import Any

import pytest

from sprocket.spark.pipelines.changes.change import MessageContent
from sprocket.spark.pipelines.changes.debezium import UNAVAILABLE, content, is_debezium
from sprocket.spark.pipelines.changes.json_values import UnfitMessage, parsed
from tests.spark.pipelines.changes.bodies import AT_MS, debezium, debezium_key, encoded

_AMOUNT = base64.b64encode((1050).to_bytes(2)).decode()


def _read(message: Any, key: str | None = None) -> MessageContent:
    found = parsed(encoded(message))
    assert is_debezium(found)
    return content(found, key, UNAVAILABLE)


def _change(message: Any, key: str | None = None) -> Any:
    (change,) = _read(message, key).changes
    return change


@pytest.mark.parametrize("operation", ["c", "r", "u"])
def test_a_row_that_was_written_or_read_by_a_snapshot(operation: str) -> None:
    after = {"id": 1004, "name": "Anne", "notes": None, "amount": _AMOUNT}
    change = _change(debezium(operation, None, after), debezium_key(1004))
    assert (change.operation, change.source, change.changed_ms) == ("upsert", "shop.orders", AT_MS)
    assert change.key == ("id",)
    assert change.values == {"id": "1004", "name": "Anne", "notes": None, "amount": "10.50"}
    assert change.types == {
        "id": "bigint", "name": "string", "notes": "string", "amount": "decimal(20,2)",
    }  # fmt: skip


def test_without_an_envelope_types_are_those_of_json() -> None:
    after = {"id": 1, "rate": 1.5, "is_paid": True, "name": None, "tags": ["a"]}
    change = _change(debezium("c", None, after, enveloped=False), debezium_key(1, enveloped=False))
    assert change.types == {
        "id": "bigint", "rate": "double", "is_paid": "boolean", "tags": "string",
    }  # fmt: skip
    assert change.values["rate"] == "1.5"
    assert (change.values["is_paid"], change.values["tags"]) == ("true", '["a"]')
    assert change.key == ("id",)


@pytest.mark.parametrize("before", [{"id": 7, "name": "x"}, {"id": 7, "name": None}, None])
def test_a_deletion_has_the_key_of_the_message_or_of_the_row(before: Any) -> None:
    change = _change(debezium("d", before, None), debezium_key(7))
    assert (change.operation, change.values["id"], change.key) == ("delete", "7", ("id",))
    if before is not None:
        assert _change(debezium("d", before, None)).values["id"] == "7"


def test_a_table_in_a_schema_is_named_with_it() -> None:
    message = debezium("c", None, {"id": 1}, enveloped=False)
    message["source"]["schema"] = "public"
    assert _change(message).source == "shop.public.orders"


@pytest.mark.parametrize(
    "value",
    [
        UNAVAILABLE,
        base64.b64encode(UNAVAILABLE.encode()).decode(),
        [UNAVAILABLE],
        {UNAVAILABLE: UNAVAILABLE},
        json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":")),
        list(UNAVAILABLE.encode()),
        [float(byte) for byte in UNAVAILABLE.encode()],
        # What Java's UUID.nameUUIDFromBytes makes of the placeholder.
        [str(uuid.UUID(bytes=hashlib.md5(UNAVAILABLE.encode()).digest(), version=3))],
    ],
)
def test_a_value_that_is_not_available_is_left_out(value: Any) -> None:
    change = _change(debezium("u", None, {"id": 1, "notes": value}))
    assert change.values == {"id": "1"}
    other = _change(debezium("u", None, {"id": 1, "notes": f"not {UNAVAILABLE}"}))
    assert other.values["notes"] == f"not {UNAVAILABLE}"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"schema": None, "payload": None}, "tombstones"),
        ({"op": "m", "message": {}, "source": {}}, "messages of no row"),
        ({"ts_ms": 1}, "messages of no row"),
        ({"source": {}, "ddl": "ALTER TABLE x", "databaseName": "shop"}, "messages of no row"),
        ({"status": "END", "id": "1", "event_count": 2}, "messages of no row"),
    ],
)  # fmt: skip
def test_what_is_of_no_row_is_left_out(message: Any, why: str) -> None:
    assert _read(message) == MessageContent(left_out=why)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (debezium("t", None, None), "truncation: of shop.orders"),
        (debezium("x", None, {}), "no op 'x'"),
        (debezium("c", None, None), "has a row in after"),
        (debezium("c", None, "text of MongoDB"), "after of Debezium is an object"),
        (debezium("u", [], {}), "before of Debezium is an object"),
    ],
)
def test_what_cannot_be_applied_is_refused(message: Any, why: str) -> None:
    with pytest.raises(UnfitMessage, match=why):
        _read(message)


@pytest.mark.parametrize("key", ["o-1 o-2", "{", '{"payload": 5}', '"id"', "", None])
def test_a_key_of_another_form_is_none(key: str | None) -> None:
    assert _change(debezium("c", None, {"id": 1}), key).key == ()
