"""Bodies of Canal and Debezium, as their documentation shows them, and a database that sends them.

Canal's are the flat message of its FlatMessage, Debezium's the change events of the page of its
MySQL connector, with the values that its PostgreSQL connector does not have.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from sprocket.spark.pipelines.changes.debezium import UNAVAILABLE

AT_MS = 1_900_000_000_000
MYSQL_TYPES = {
    "id": "bigint(20)", "name": "varchar(60)", "amount": "decimal(20,2)", "notes": "text",
}  # fmt: skip
SQL_TYPES = {"id": -5, "name": 12, "amount": 3, "notes": 2005}
CONNECT_FIELDS = [
    {"type": "int64", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "name"},
    {"type": "string", "optional": True, "field": "notes"},
    {
        "type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1, "parameters": {"scale": "2", "connect.decimal.precision": "20"},
        "field": "amount",
    },
]  # fmt: skip


def canal(
    kind: str, rows: Any, old: Any = None, *, table: str = "orders", **more: Any
) -> dict[str, Any]:
    """A flat message of Canal."""
    return {
        "data": rows, "database": "shop", "es": AT_MS, "id": 5, "isDdl": False,
        "mysqlType": MYSQL_TYPES, "old": old, "pkNames": ["id"], "sql": "",
        "sqlType": SQL_TYPES, "table": table, "ts": AT_MS + 20, "type": kind, **more,
    }  # fmt: skip


def debezium(
    operation: str, before: Any, after: Any, *, enveloped: bool = True, table: str = "orders"
) -> dict[str, Any]:
    """A change event of Debezium."""
    payload = {
        "before": before,
        "after": after,
        "source": {
            "version": "3.0.0.Final", "connector": "mysql", "name": "shop1", "ts_ms": AT_MS,
            "snapshot": "false", "db": "shop", "table": table, "server_id": 223344,
            "file": "mysql-bin.000003", "pos": 484, "row": 0,
        },
        "op": operation,
        "ts_ms": AT_MS + 20,
    }  # fmt: skip
    if not enveloped:
        return payload
    row = {"type": "struct", "fields": CONNECT_FIELDS, "optional": True, "name": "shop1.Value"}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}]
    return {"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": payload}


def debezium_key(number: int, *, enveloped: bool = True) -> str:
    """The key of its message, RocketMQ's KEYS."""
    if not enveloped:
        return json.dumps({"id": number}, separators=(",", ":"))
    schema = {"type": "struct", "fields": CONNECT_FIELDS[:1], "optional": False}
    return json.dumps({"schema": schema, "payload": {"id": number}}, separators=(",", ":"))


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


class Sent(NamedTuple):
    """A message of a database.

    Attributes:
        by: number of the key by which its queue is chosen.
    """

    body: bytes
    keys: str | None
    by: int


Row = dict[str, Any]


class Database:
    """A table of a database whose changes are told as Canal or as Debezium tells them."""

    def __init__(self, seed: int, style: str, *, keys: int = 12) -> None:
        self._chance = random.Random(seed)
        self._style = style
        self._keys = keys
        self.rows: dict[int, Row] = {}

    def changes(self, count: int) -> list[Sent]:
        """So many statements of one row each, as messages."""
        return [sent for _ in range(count) for sent in self._statement()]

    def _statement(self) -> list[Sent]:
        number = self._chance.randrange(self._keys)
        if number not in self.rows:
            self.rows[number] = self._row(number)
            return [self._told("c", None, self.rows[number])]
        before = self.rows[number]
        if self._chance.random() < 0.25:
            del self.rows[number]
            return [self._told("d", before, None)]
        after = {**before, **{
            name: value for name, value in self._row(number).items()
            if name != "id" and self._chance.random() < 0.5
        }}  # fmt: skip
        self.rows[number] = after
        return [self._told("u", before, after)]

    def _row(self, number: int) -> Row:
        cents = self._chance.randrange(-(10**12), 10**12)
        sign, whole = "-" if cents < 0 else "", abs(cents)
        return {
            "id": number,
            "name": self._chance.choice([None, "é", "", "a'b\n", "日本"]),
            "amount": f"{sign}{whole // 100}.{whole % 100:02}",
            "notes": self._chance.choice([None, "long " * 20, "short"]),
        }

    def _told(self, operation: str, before: Row | None, after: Row | None) -> Sent:
        number = int((after or before or {})["id"])
        if self._style == "canal":
            return Sent(encoded(_as_canal(operation, before, after)), None, number)
        is_enveloped = self._style == "envelope"
        shown = dict(after) if after is not None else None
        # PostgreSQL does not say large values that an update leaves as they are.
        if before and shown and before["notes"] == shown["notes"] and shown["notes"]:
            shown["notes"] = UNAVAILABLE
        body = debezium(
            operation,
            _as_connect(before, is_enveloped),
            _as_connect(shown, is_enveloped),
            enveloped=is_enveloped,
        )
        return Sent(encoded(body), debezium_key(number, enveloped=is_enveloped), number)


def _as_canal(operation: str, before: Row | None, after: Row | None) -> dict[str, Any]:
    if after is None:
        return canal("DELETE", [_texts(before or {})])
    if before is None:
        return canal("INSERT", [_texts(after)])
    old = {name: value for name, value in _texts(before).items() if before[name] != after[name]}
    return canal("UPDATE", [_texts(after)], [old])


def _texts(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}


def _as_connect(row: Row | None, is_enveloped: bool) -> Row | None:
    """A row whose amount is bytes in base64, or with `decimal.handling.mode=string` its text."""
    if row is None or not is_enveloped:
        return row
    cents = int(row["amount"].replace(".", ""))
    size = cents.bit_length() // 8 + 1
    return {**row, "amount": base64.b64encode(cents.to_bytes(size, signed=True)).decode()}
