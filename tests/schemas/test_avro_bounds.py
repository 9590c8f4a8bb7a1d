"""Bytes of Avro that fastavro would take amiss are refused before it reads them."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastavro")

from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import BodyMismatch
from tests.schemas.parts import AVRO_CHAIN

_HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
_EMPTY = '{"type":"record","name":"E","fields":[]}'


def test_depth_is_bounded_where_c_would_end_the_process() -> None:
    codec = AvroBodies(AVRO_CHAIN)
    assert codec.decode(b"\x02" * 99 + b"\0")
    for depth in (100, 10_000, 1_000_000):
        with pytest.raises(BodyMismatch, match="nested deeper"):
            codec.decode(b"\x02" * depth + b"\0")


@pytest.mark.parametrize("items", ['"null"', _EMPTY, '{"type":"fixed","name":"F","size":0}'])
def test_items_without_bytes_are_bounded(items: str) -> None:
    codec = AvroBodies(f'{{"type":"array","items":{items}}}')
    with pytest.raises(BodyMismatch, match="items without bytes"):
        codec.decode(_HUGE + b"\0")
    # Many blocks are no way around it.
    with pytest.raises(BodyMismatch, match="items without bytes"):
        codec.decode(b"\x80\x7d" * 20_000 + b"\0")
    assert len(codec.decode(b"\x06\0")) == 3


def test_records_without_bytes_are_bounded() -> None:
    """A schema of a few lines may stand for 2^30 records, and a body of one byte for many nulls."""
    inner: object = {"type": "record", "name": "r0", "fields": []}
    for number in range(1, 31):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"r{number - 1}"}]
        inner = {"type": "record", "name": f"r{number}", "fields": fields}
    with pytest.raises(BodyMismatch, match="more fields than bytes"):
        AvroBodies(json.dumps(inner)).decode(b"")
    fields = [{"name": f"n{number}", "type": "null"} for number in range(10_000)]
    wide = {"type": "record", "name": "w", "fields": [{"name": "x", "type": "boolean"}, *fields]}
    codec = AvroBodies(json.dumps({"type": "array", "items": wide}))
    assert len(codec.decode(b"\x04\0\0\0")) == 2
    with pytest.raises(BodyMismatch, match="more fields than bytes"):
        codec.decode(b"\xc8\x01" + b"\0" * 101)


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ('["null","int"]', b"\x01\x02", "branch -1"),
        ('["null","int"]', b"\x04", "branch 2"),
        ('{"type":"enum","name":"E","symbols":["A","B"]}', b"\x01", "symbol -1"),
        ('"int"', _HUGE, "32 bits"),
        ('"long"', b"\xff" * 20, "64 bits"),
        ('"boolean"', b"\x07", "no boolean"),
        ('"string"', _HUGE, "ends before"),
        ('"bytes"', b"\x01", "-1 bytes"),
        ('"double"', b"\x07", "ends before"),
        ('"int"', b"\x02\x02", "follow"),
        ('"null"', b"x", "follow"),
        ('{"type":"array","items":"int"}', _HUGE + b"\x02", "ends before"),
        ('{"type":"array","items":"int"}', b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", "ends"),
        ('{"type":"map","values":"null"}', b"\xfe\xff\xff\xff\x0f\x02a", "ends before"),
        ('{"type":"fixed","name":"F","size":10}', b"\x07", "ends before"),
    ],
)
def test_bytes_that_are_no_value_say_why(schema: str, body: bytes, reason: str) -> None:
    with pytest.raises(BodyMismatch, match=reason):
        AvroBodies(schema).decode(body)


def test_blocks_with_their_size_are_read() -> None:
    assert AvroBodies('{"type":"array","items":"int"}').decode(b"\x03\x04\x02\x04\0") == [1, 2]


def test_a_record_of_nothing_but_itself_has_no_value() -> None:
    codec = AvroBodies('{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}')
    with pytest.raises(BodyMismatch, match="nested deeper"):
        codec.decode(b"")
