"""Messages of Debezium in JSON, with and without the envelope `schema`. Pure.

A message has `before` and `after` of one row, `op` (c create, r read by a snapshot, u update, d
delete, t truncate, m logical message) and `source`. With the envelope all this is in `payload`, and
`schema` describes it as Kafka Connect does. The message's key, here RocketMQ's KEYS, has the key
columns, in the same form. Values of which Debezium says that they are not available are left out,
so a column keeps what it has.

Sources: Debezium's documentation of change events, of its RocketMQ sink and of the property
`unavailable.value.placeholder`, and UnchangedToastedPlaceholder; Kafka Connect's JsonSchema.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from sprocket.spark.pipelines.changes import connect_types
from sprocket.spark.pipelines.changes.change import MessageContent, RowChange, Values
from sprocket.spark.pipelines.changes.connect_types import FieldType
from sprocket.spark.pipelines.changes.json_values import (
    NumberText,
    UnfitMessage,
    parsed,
    text_of,
    whole_number,
)

#: Debezium's own text for a value that is not available.
UNAVAILABLE = "__debezium_unavailable_value"
#: Fields of messages that are of no row: changes of schemas, ends of transactions.
_OF_NO_ROW = ({"ddl", "source"}, {"tableChanges", "source"}, {"status", "id", "event_count"})
_HEARTBEAT = {"ts_ms"}


def is_debezium(message: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a message."""
    inner = message.get("payload") if "payload" in message else message
    if inner is None:
        return True
    return isinstance(inner, Mapping) and (
        "op" in inner
        or set(inner) == _HEARTBEAT
        or any(names <= inner.keys() for names in _OF_NO_ROW)
    )


def content(message: Mapping[str, Any], key: str | None, unavailable: str) -> MessageContent:
    """The changes in a message: one, or none.

    Args:
        key: the KEYS of the message.
        unavailable: the text that stands for a value that is not available.

    Raises:
        UnfitMessage: it has another shape, or empties its table.
    """
    schema, payload = _opened(message)
    if payload is None:
        return MessageContent(left_out="tombstones")
    operation = payload.get("op")
    source = _source(payload)
    if operation is None or operation == "m":
        return MessageContent(left_out="messages of no row")
    if operation == "t":
        raise UnfitMessage("truncation", f"of {source}")
    if operation not in ("c", "r", "u", "d"):
        raise UnfitMessage("unknown message", f"Debezium has no op {operation!r}")
    row_types = _row_types(schema)
    key_values, key_types = _key(key)
    before = _values(payload.get("before"), "before", row_types, unavailable)
    if operation == "d":
        values: Values = {**before, **key_values}
    else:
        if payload.get("after") is None:
            raise UnfitMessage("unknown message", f"op {operation} of Debezium has a row in after")
        values = _values(payload["after"], "after", row_types, unavailable)
    row = payload.get("before" if operation == "d" else "after")
    types = {name: kind.ddl for name, kind in {**key_types, **row_types}.items()}
    change = RowChange(
        operation="delete" if operation == "d" else "upsert",
        source=source,
        changed_ms=_changed_ms(payload),
        values=values,
        before=before if operation == "u" else {},
        key=tuple(key_values),
        types=types if row_types else {**_guessed(row), **types},
    )
    return MessageContent((change,))


def _opened(message: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any] | None]:
    """Schema and payload; without an envelope the schema is None."""
    if "payload" not in message:
        return None, message
    payload = message["payload"]
    if payload is not None and not isinstance(payload, dict):
        raise UnfitMessage("unknown message", "payload of Debezium is an object")
    return message.get("schema"), payload


def _source(payload: Mapping[str, Any]) -> str:
    source = payload.get("source")
    if not isinstance(source, dict):
        return ""
    parts = (source.get(name) for name in ("db", "schema", "table"))
    return ".".join(part for part in parts if isinstance(part, str) and part)


def _changed_ms(payload: Mapping[str, Any]) -> int | None:
    source = payload.get("source")
    said = whole_number(source.get("ts_ms")) if isinstance(source, dict) else None
    return said or whole_number(payload.get("ts_ms"))


def _row_types(schema: Any) -> dict[str, FieldType]:
    fields = connect_types.fields(schema)
    for name in ("after", "before"):
        if name in fields:
            return connect_types.types(fields[name])
    return {}


def _key(text: str | None) -> tuple[dict[str, str | None], dict[str, FieldType]]:
    """The key's values and types; empty if the message's key is none of Debezium's."""
    if not text or not text.lstrip().startswith("{"):
        return {}, {}
    try:
        found = parsed(text)
    except UnfitMessage:
        return {}, {}
    types = connect_types.types(found.get("schema")) if "payload" in found else {}
    values = found.get("payload", found)
    if not isinstance(values, dict):
        return {}, {}
    return {name: _text(value, types.get(name)) for name, value in values.items()}, types


def _values(row: Any, name: str, types: Mapping[str, FieldType], unavailable: str) -> Values:
    if row is None:
        return {}
    if not isinstance(row, dict):
        raise UnfitMessage("unknown message", f"{name} of Debezium is an object")
    return {
        column: _text(value, types.get(column))
        for column, value in row.items()
        if not _is_unavailable(value, unavailable)
    }


def _text(value: Any, kind: FieldType | None) -> str | None:
    return text_of(value) if kind is None or value is None else connect_types.text(value, kind)


def _guessed(row: Any) -> dict[str, str]:
    """Types by the JSON values of a message without a schema; of null nothing is known."""
    if not isinstance(row, dict):
        return {}
    return {name: _guess(value) for name, value in row.items() if value is not None}


def _guess(value: Any) -> str:
    if isinstance(value, NumberText):
        return "double" if any(one in value for one in ".eE") else "bigint"
    return "boolean" if isinstance(value, bool) else "string"


def _is_unavailable(value: Any, unavailable: str) -> bool:
    """Whether a value is the placeholder in one of the forms that it has by the column's type."""
    if isinstance(value, str):
        return value in (unavailable, _encoded(unavailable)) or (
            unavailable in value and value == f'{{"{unavailable}":"{unavailable}"}}'
        )
    if isinstance(value, dict):
        return value == {unavailable: unavailable}
    if not isinstance(value, list) or not value:
        return False
    if len(value) == 1:
        return value[0] in (unavailable, _encoded(unavailable), _as_uuid(unavailable))
    # An array of numbers has one for each byte of the placeholder.
    wanted = unavailable.encode()
    return len(value) == len(wanted) and all(
        isinstance(one, NumberText) and one in (str(byte), f"{byte}.0")
        for one, byte in zip(value, wanted, strict=True)
    )


def _encoded(unavailable: str) -> str:
    return base64.b64encode(unavailable.encode()).decode()


def _as_uuid(unavailable: str) -> str:
    """What Java's UUID.nameUUIDFromBytes makes of it."""
    digest = bytearray(hashlib.md5(unavailable.encode(), usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30  # the version and the variant of RFC 4122
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
