"""The columns of the `rocketmq` source: their names, types, and the default choice.

Without a schema, the columns with `is_default` are read. A schema of the user chooses any of
`COLUMNS`; other columns are not decoded. Column types are fixed, except that `body` may be a
string. Arrow types are exactly those that Spark expects for its own types.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sprocket.base.errors import UsageError
from sprocket.spark.records.value_types import arrow_type_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Column:
    """The declaration of a column.

    Attributes:
        name: its name.
        type: Spark's type, as in DDL.
        doc: one sentence for the documentation.
        is_default: whether it is read when no schema is given.
    """

    name: str
    type: str
    doc: str
    is_default: bool = True


#: The attributes of CloudEvents that its specification names, the time, and all others.
EVENT_TYPE = (
    "struct<id:string,source:string,specversion:string,type:string,datacontenttype:string,"
    "dataschema:string,subject:string,time:timestamp,extensions:map<string,string>>"
)

COLUMNS = (
    Column("topic", "string", "Topic that was read."),
    Column("broker", "string", "Name of the broker that has the queue."),
    Column("queue_id", "int", "Number of the queue."),
    Column("queue_offset", "bigint", "Index of the message in its queue, from 0."),
    Column("key", "string", "Keys of the message, as sent; several are separated by blanks."),
    Column("tag", "string", "Tag of the message, or null."),
    Column(
        "body",
        "binary",
        "Payload, opened if it was compressed. `string` may be asked for: then bytes that are no "
        "UTF-8 become U+FFFD.",
    ),
    Column(
        "properties",
        "map<string,string>",
        "All properties: the sender's and RocketMQ's own (`KEYS`, `TAGS`, `UNIQ_KEY`, …).",
    ),
    Column("born_timestamp", "timestamp", "When it was sent, by the sender's clock."),
    Column("store_timestamp", "timestamp", "When it was stored, by the broker's clock."),
    Column(
        "message_id", "string", "The id that its sender got; the broker's offset id if it has none."
    ),
    Column("log_offset", "bigint", "Position of its record in the broker's log, bytes.", False),
    Column("flag", "int", "A number of the sender, which RocketMQ keeps and never reads.", False),
    Column(
        "sys_flag",
        "int",
        "RocketMQ's bits, as stored: 0x1 compressed, 0xC transaction state.",
        False,
    ),
    Column("reconsume_times", "int", "How many times a consumer group has given it back.", False),
    Column(
        "prepared_offset", "bigint", "For a transaction's message, log offset of its half.", False
    ),
    Column("record_bytes", "int", "Size of its record in the log.", False),
    Column("body_crc", "int", "CRC-32 of the stored body, without the top bit.", False),
    Column("born_host", "string", "`ip:port` of the sender.", False),
    Column("store_host", "string", "`ip:port` of the broker.", False),
    Column(
        "offset_id", "string", "The broker's id: its address and the log offset, in hex.", False
    ),
)
#: Columns that options make of bodies and properties.
DECODED_COLUMNS = (
    Column(
        "value",
        "by the schema",
        "The body decoded by `bodyFormat`; null if it does not fit. Read with `bodyFormat`, or in "
        "any type that a schema gives it.",
        False,
    ),
    Column("value_error", "string", "Why a body does not fit, or null. Read with `value`.", False),
    Column(
        "event",
        EVENT_TYPE,
        "Attributes of a CloudEvent, with option `cloudEvents`; null for other messages.",
        False,
    ),
)
VALUE, VALUE_ERROR, EVENT = "value", "value_error", "event"
BY_NAME = {column.name: column for column in (*COLUMNS, *DECODED_COLUMNS)}

_EVENT_TEXTS = (
    "id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject",
)  # fmt: skip
_ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
_ARROW[EVENT_TYPE] = pa.struct(
    [
        *((name, pa.string()) for name in _EVENT_TEXTS),
        ("time", _ARROW["timestamp"]),
        ("extensions", _ARROW["map<string,string>"]),
    ]
)
#: Other types that a schema may give a column.
_ALSO = {"body": ("string",)}

#: Column names of other sources and clients, for the hint in errors.
_ELSEWHERE = {
    "payload": "body",
    "partition": "queue_id",
    "queueid": "queue_id",
    "offset": "queue_offset",
    "queueoffset": "queue_offset",
    "timestamp": "store_timestamp",
    "headers": "properties",
    "keys": "key",
    "tags": "tag",
    "brokername": "broker",
    "msgid": "message_id",
    "borntimestamp": "born_timestamp",
    "storetimestamp": "store_timestamp",
}


def default_ddl(
    *, has_properties: bool = True, value: str | None = None, has_event: bool = False
) -> str:
    """The default schema as Spark's DDL.

    Args:
        value: the type of the column `value` as DDL; None for no such column.
    """
    columns = [
        f"{column.name} {column.type}"
        for column in COLUMNS
        if column.is_default and (has_properties or column.name != "properties")
    ]
    if has_event:
        columns.append(f"{EVENT} {EVENT_TYPE}")
    if value is not None:
        columns += [f"{VALUE} {value}", f"{VALUE_ERROR} string"]
    return ", ".join(columns)


def arrow_schema(
    fields: Sequence[tuple[str, str, bool]], value: pa.DataType | None = None
) -> pa.Schema:
    """The Arrow schema for chosen columns.

    Args:
        fields: name, Spark type and whether null is allowed, in the order of the schema.
        value: the type of the column `value`.

    Raises:
        UsageError: a column does not exist, or not in that type.
    """
    chosen = []
    for name, kind, is_nullable in fields:
        column = BY_NAME.get(name)
        if column is None:
            raise UsageError(_unknown(name))
        if name == VALUE and value is not None:
            chosen.append(pa.field(name, value, nullable=is_nullable))
            continue
        if kind != column.type and kind not in _ALSO.get(name, ()):
            raise UsageError(f"column {name} is {column.type}, not {kind}")
        chosen.append(pa.field(name, _ARROW[kind], nullable=is_nullable))
    if not chosen:
        raise UsageError("the schema has no column")
    return pa.schema(chosen)


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema for a schema of Spark's.

    Raises:
        UsageError: a column does not exist, or not in that type.
    """
    value = next((one.dataType for one in schema.fields if one.name == VALUE), None)
    return arrow_schema(
        [(one.name, one.dataType.simpleString(), one.nullable) for one in schema.fields],
        None if value is None else arrow_type_of(value),
    )


def _unknown(name: str) -> str:
    names = list(BY_NAME)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    nearest = _ELSEWHERE.get(name.lower()) or (close[0] if close else None)
    hint = f"did you mean {nearest}?" if nearest else f"there are: {', '.join(names)}"
    return f"the rocketmq source has no column {name}: {hint}"
