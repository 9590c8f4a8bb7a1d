"""Targets about bodies with a schema: bodies, schemas, events, and values as columns. As in
`targets`.

Nothing but `BodyMismatch` and `SchemaInvalid` comes out of them, and Arrow takes what is fitted.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from sprocket.base.errors import SprocketError
from sprocket.schemas import framing
from sprocket.schemas.arrow_columns import ValueColumn
from sprocket.schemas.arrow_types import arrow_type, ddl
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.cloud_events import event_of
from sprocket.schemas.descriptors import files_of
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from sprocket.schemas.shown import json_of
from tests.schemas.parts import AVRO_CHAIN, AVRO_ORDER, ORDER, order_files, order_set

_STRANGE = (
    '{"type":"array","items":"null"}',
    '{"type":"map","values":["null",{"type":"bytes","logicalType":"decimal","precision":5}]}',
    '{"type":"array","items":{"type":"long","logicalType":"timestamp-millis"}}',
    '{"type":"array","items":{"type":"int","logicalType":"time-millis"}}',
)


@functools.cache
def _codecs() -> list[BodyCodec]:
    avro = [AvroBodies(text) for text in (AVRO_ORDER, AVRO_CHAIN, *_STRANGE)]
    return [JsonBodies(), ProtobufBodies(order_files(), "shop.Order"), *avro]


@functools.cache
def _column(number: int) -> ValueColumn:
    return ValueColumn(arrow_type(_codecs()[number]))


def schema_bodies(data: bytes) -> None:
    """A body for the codec that the first byte chooses: decoded, shown, and as a column.

    What was decoded can be encoded, and gives the same value.
    """
    number = data[0] % len(_codecs()) if data else 0
    codec, body = _codecs()[number], data[1:]
    try:
        value = codec.decode(body)
    except BodyMismatch:
        return
    json_of(value)
    with contextlib.suppress(BodyMismatch):
        again = codec.decode(codec.encode(value))
        assert repr(again) == repr(value)
    if number:
        column = _column(number)
        with contextlib.suppress(BodyMismatch):
            column.array([column.fitted(value)])


def schema_texts(data: bytes) -> None:
    """A schema of Avro, and the columns that it gives."""
    with contextlib.suppress(SprocketError):
        made = AvroBodies(data.decode("utf-8", "surrogateescape"))
        ddl(arrow_type(made))
        with contextlib.suppress(BodyMismatch):
            made.decode(data)


def descriptor_sets(data: bytes) -> None:
    """A descriptor set of Protobuf, and the columns that it gives."""
    with contextlib.suppress(SchemaInvalid):
        made = ProtobufBodies(files_of(data))
        ddl(arrow_type(made))
        with contextlib.suppress(BodyMismatch):
            made.decode(data)


def framed_bodies(data: bytes) -> None:
    """The number of a schema and the place of a message in front of a body."""
    with contextlib.suppress(BodyMismatch):
        found = framing.split(data)
        assert framing.join(*found) == data
        place, content = framing.split_place(found.content)
        assert framing.split_place(framing.join_place(place, content)) == (place, content)


def cloud_events(data: bytes) -> None:
    """An event as JSON, and as properties, one a line."""
    with contextlib.suppress(BodyMismatch):
        event_of({"contentType": "application/cloudevents+json"}, data)
    lines = data.decode("utf-8", "replace").split("\n")
    properties = dict(line.partition("=")[::2] for line in lines)
    with contextlib.suppress(BodyMismatch):
        event_of(properties, data)


SCHEMAS = (schema_bodies, schema_texts, descriptor_sets, framed_bodies, cloud_events)
SCHEMA_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "schema_bodies": lambda: [
        b'\x00{"a":[1,2.5,null,"x"],"b":{"c":true}}',
        b"\x01" + ProtobufBodies(order_files(), "shop.Order").encode(
            {"id": "a", "tags": ["b"], "counts": {"c": 7}, "next": {"id": "d"}, "score": 3}
        ),
        b"\x02" + AvroBodies(AVRO_ORDER).encode(ORDER),
        b"\x03\x02\x02\x02\x00",
        b"\x04\x06\x00",
        b"\x05\x02\x02a\x02\x04\x01\x02\x00",
        b"\x06\x02\x02\x00",
        b"\x07\x02\x02\x00",
    ],
    "schema_texts": lambda: [text.encode() for text in (AVRO_ORDER, AVRO_CHAIN, *_STRANGE)],
    "descriptor_sets": lambda: [order_set()],
    "framed_bodies": lambda: [b"\0\0\0\0\x11\x04\x02\0x", b"\0\0\0\0\x11\0x"],
    "cloud_events": lambda: [
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}',
        b"CE_specversion=1.0\nCE_id=1\nCE_source=/s\nCE_type=t\nCE_time=2030-01-31T08:00:00Z",
    ],
}  # fmt: skip
