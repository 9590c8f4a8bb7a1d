"""Avro bodies: what fastavro reads, but for what would harm the process or be wrong in silence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastavro")

import contextlib

from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from tests.schemas.parts import AVRO_ORDER, ORDER


def test_a_record_is_a_dict_both_ways() -> None:
    codec = AvroBodies(AVRO_ORDER)
    body = codec.encode(ORDER)
    assert body == b"\x06o-1" + b"\0\0\0\0\0\0\x04@" + b"\x02\x06" + b"\x02\x02a\0" + b"\x02"
    assert codec.decode(body) == ORDER


def test_a_field_with_a_default_may_be_absent_and_others_may_not() -> None:
    codec = AvroBodies(AVRO_ORDER)
    assert codec.decode(codec.encode({"id": "a", "amount": 1.0}))["state"] == "NEW"
    for value in (
        {"amount": 1.0}, {"id": "a", "amount": 1.0, "unknown": 1}, {"id": 7, "amount": 1.0}, [1],
        {"id": "a", "amount": 1.0, "count": 1 << 70}, {"id": "\ud800", "amount": 1.0},
    ):  # fmt: skip
        with pytest.raises(BodyMismatch):
            codec.encode(value)


@pytest.mark.parametrize(
    ("schema", "value"), [('"int"', 1 << 31), ('"int"', -(1 << 31) - 1), ('"long"', 1 << 63)]
)
def test_a_number_that_does_not_fit_is_refused_and_not_cut(schema: str, value: int) -> None:
    with pytest.raises(BodyMismatch):
        AvroBodies(schema).encode(value)


def test_logical_types_are_times_and_decimals() -> None:
    stamp = AvroBodies('{"type":"long","logicalType":"timestamp-millis"}')
    assert stamp.decode(b"\x02") == datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)
    money = AvroBodies('{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}')
    assert money.decode(b"\x04\x01\x02") == Decimal("2.58")
    with pytest.raises(BodyMismatch, match="more than 4 digits"):
        money.decode(b"\x0aaaaaa")  # fastavro would round it
    with pytest.raises(BodyMismatch):
        stamp.decode(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")  # a year beyond 9999


def test_a_reader_s_schema_gives_its_fields() -> None:
    newer = json.loads(AVRO_ORDER)
    newer["fields"] = [*newer["fields"][:2], {"name": "shop", "type": "string", "default": "?"}]
    reader = AvroBodies(json.dumps(newer))
    body = AvroBodies(AVRO_ORDER).encode(ORDER)
    found = AvroBodies(AVRO_ORDER, reader=reader).decode(body)
    assert found == {"id": "o-1", "amount": 2.5, "shop": "?"}


def test_a_schema_may_refer_to_others_by_name() -> None:
    money = '{"type":"record","name":"shop.Money","fields":[{"name":"cents","type":"long"}]}'
    order = '{"type":"record","name":"shop.O","fields":[{"name":"price","type":"shop.Money"}]}'
    codec = AvroBodies(order, named=[money])
    assert codec.decode(b"\x02") == {"price": {"cents": 1}}
    with pytest.raises(SchemaInvalid):
        AvroBodies(order)


@pytest.mark.parametrize(
    "schema",
    [
        "", "{", "17", "null", "[" * 100_000, '"nothing"', "{}", '{"type":"record"}',
        '{"type":"array"}', '{"type":"enum","name":"E","symbols":3}',
        '{"type":"fixed","name":"F","size":"x"}', '{"type":"fixed","name":"F","size":-1}',
        '{"type":"fixed","name":"F","size":99999999999}',
        '{"type":"bytes","logicalType":"decimal","precision":9999999999}',
        '{"type":"array","items":' * 200 + '"int"' + "}" * 200,
        '"\ud800"', '"int"' + " " * (1 << 20), '"file:///etc/passwd"', '"http://schemas/order"',
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(SchemaInvalid):
        AvroBodies(schema)


_ANY: Any = st.binary(max_size=60) | st.lists(st.sampled_from([0, 1, 2, 255]), max_size=60)


@given(_ANY)
def test_any_bytes_are_a_value_or_do_not_fit(given_bytes: Any) -> None:
    with contextlib.suppress(BodyMismatch):
        AvroBodies(AVRO_ORDER).decode(bytes(given_bytes))


@given(
    st.fixed_dictionaries(
        {
            "id": st.text(max_size=20),
            "amount": st.floats(allow_nan=False),
            "count": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            "tags": st.lists(st.text(max_size=5), max_size=5),
            "state": st.sampled_from(["NEW", "PAID"]),
        }
    )
)
def test_what_is_encoded_is_decoded_again(value: dict[str, Any]) -> None:
    codec = AvroBodies(AVRO_ORDER)
    assert codec.decode(codec.encode(value)) == value
