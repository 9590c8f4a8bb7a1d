"""Messages of Canal in JSON (`canal.mq.flatMessage = true`). Pure.

A message has rows of one statement in `data`, each a map from column to text or null; of an update
`old` has what the changed columns held before, row by row. `pkNames` names the key, `mysqlType` and
`sqlType` (java.sql.Types) the columns' types.

Sources: Canal's FlatMessage, MQMessageUtils (how it is filled) and JdbcTypeUtil (how Canal's own
adapters read it: bytes as ISO 8859-1, dates of zeros as null).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from sprocket.spark.pipelines.changes.change import MessageContent, RowChange, Values
from sprocket.spark.pipelines.changes.json_values import UnfitMessage, text_of, whole_number

_ROW_KINDS = ("INSERT", "UPDATE", "DELETE")
#: Kinds of CanalEntry.EventType that change no rows, or whose rows are not told.
_OTHER_KINDS = (
    "CREATE", "ALTER", "ERASE", "QUERY", "RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT",
    "XAROLLBACK", "MHEARTBEAT",
)  # fmt: skip
_MYSQL_TYPE = re.compile(r"\s*([a-z0-9]+(?: precision| varying)?)\s*(?:\(([^)]*)\))?(.*)", re.ASCII)
_PLAIN = {
    "tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int",
    "integer": "int", "bigint": "bigint", "year": "int", "float": "double", "double": "double",
    "real": "double", "double precision": "double", "bool": "boolean", "boolean": "boolean",
    "date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp_ntz", "binary": "binary",
    "varbinary": "binary", "tinyblob": "binary", "blob": "binary", "mediumblob": "binary",
    "longblob": "binary", "geometry": "binary", "point": "binary", "linestring": "binary",
    "polygon": "binary",
}  # fmt: skip
#: What holds all values of an unsigned type.
_UNSIGNED = {"tinyint": "smallint", "smallint": "int", "int": "bigint", "bigint": "decimal(20,0)"}
_SQL_TYPES = {
    -7: "boolean", 16: "boolean", -6: "tinyint", 5: "smallint", 4: "int", -5: "bigint",
    6: "double", 7: "double", 8: "double", 91: "date", 93: "timestamp_ntz", -2: "binary",
    -3: "binary", -4: "binary", 2004: "binary",
}  # fmt: skip
_ZERO_DATE = "0000-00-00"


def is_canal(message: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a message."""
    return "isDdl" in message or {"database", "table", "type", "data"} <= message.keys()


def content(message: Mapping[str, Any]) -> MessageContent:
    """The changes in a message.

    Raises:
        UnfitMessage: it has another shape, or empties its table.
    """
    kind = message.get("type")
    if kind == "TRUNCATE":
        raise UnfitMessage("truncation", f"of {message.get('database')}.{message.get('table')}")
    if message.get("isDdl") is True or kind in _OTHER_KINDS:
        return MessageContent(left_out="DDL and statements")
    if kind not in _ROW_KINDS:
        raise UnfitMessage("unknown message", f"Canal has no type {kind!r}")
    rows = message.get("data") or []
    if not rows:
        return MessageContent(left_out="DDL and statements")
    is_list = isinstance(rows, list)
    olds = message.get("old") or ([{}] * len(rows) if is_list else None)
    if not is_list or not isinstance(olds, list) or len(rows) != len(olds):
        raise UnfitMessage("unknown message", "data and old of Canal are lists of equal length")
    types = _types(message)
    made = (
        _change(message, kind, row, old or {}, types) for row, old in zip(rows, olds, strict=True)
    )
    return MessageContent(tuple(made))


def _change(
    message: Mapping[str, Any], kind: str, row: Any, old: Any, types: Mapping[str, str]
) -> RowChange:
    names = message.get("pkNames") or ()
    if (
        not isinstance(row, dict)
        or not isinstance(old, dict)
        or not isinstance(names, list | tuple)
    ):
        raise UnfitMessage("unknown message", "rows of Canal are objects, and pkNames is a list")
    values = _values(row, types)
    return RowChange(
        operation="delete" if kind == "DELETE" else "upsert",
        source=f"{message.get('database')}.{message.get('table')}",
        changed_ms=whole_number(message.get("es")),
        values=values,
        before={**values, **_values(old, types)} if kind == "UPDATE" else {},
        key=tuple(map(str, names)),
        types=types,
    )


def _values(row: Mapping[str, Any], types: Mapping[str, str]) -> Values:
    return {name: _value(value, types.get(name, "")) for name, value in row.items()}


def _value(value: Any, kind: str) -> str | None:
    text = text_of(value)
    if text is None or not kind:
        return text
    if kind == "binary":
        try:
            return base64.b64encode(text.encode("latin-1")).decode()
        except UnicodeEncodeError:
            raise UnfitMessage("type", "bytes of Canal are characters of ISO 8859-1") from None
    if kind in ("date", "timestamp_ntz") and text.startswith(_ZERO_DATE):
        return None
    return text


def _types(message: Mapping[str, Any]) -> Mapping[str, str]:
    said, numbers = message.get("mysqlType") or {}, message.get("sqlType") or {}
    if not isinstance(said, dict) or not isinstance(numbers, dict):
        raise UnfitMessage("unknown message", "mysqlType and sqlType of Canal are objects")
    found = {}
    for name in {**numbers, **said}:
        text = said.get(name)
        if isinstance(text, str) and text:
            found[name] = mysql_type(text)
        else:
            found[name] = _SQL_TYPES.get(whole_number(numbers.get(name)) or 0, "string")
    return found


def mysql_type(text: str) -> str:
    """Spark's type that holds all values of a type of MySQL: `int(10) unsigned` is a bigint.

    Numbers of more than 38 digits, times without a day, and all that is unknown are texts.
    """
    match = _MYSQL_TYPE.fullmatch(text.lower())
    if match is None:
        return "string"
    name, size, rest = match.groups()
    if name in ("decimal", "numeric", "dec", "fixed"):
        return _decimal(size or "10")
    if name == "bit":
        return "boolean" if (size or "1").strip() == "1" else "decimal(20,0)"
    plain = _PLAIN.get(name, "string")
    return _UNSIGNED.get(plain, plain) if "unsigned" in rest and name != "mediumint" else plain


def _decimal(size: str) -> str:
    try:
        digits, scale = map(int, size.split(",") if "," in size else (size, "0"))
    except ValueError:
        return "string"
    return f"decimal({digits},{scale})" if 0 <= scale <= digits <= 38 and digits else "string"
