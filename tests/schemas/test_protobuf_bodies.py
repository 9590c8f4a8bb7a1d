"""Protobuf bodies are plain values of their descriptor."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from tests.schemas.parts import order_files

ORDERS = ProtobufBodies(order_files(), "shop.Order")
FULL: dict[str, Any] = {
    "id": "o-1", "price": {"cents": 250, "currency": "EUR"}, "tags": ["a", "b"], "state": "PAID",
    "at": datetime(2030, 1, 31, 8, tzinfo=UTC), "next": None, "score": 7,
    "counts": {"x": (1 << 64) - 1}, "raw": b"\xff",
}  # fmt: skip


def test_a_message_is_a_dict_both_ways() -> None:
    assert ORDERS.decode(ORDERS.encode(FULL)) == FULL


def test_what_is_absent_is_none_or_the_default() -> None:
    assert ORDERS.decode(b"") == {
        "id": "", "price": None, "tags": [], "state": "NEW", "at": None, "next": None,
        "score": None, "counts": {}, "raw": b"",
    }  # fmt: skip


def test_a_number_without_a_name_in_an_enum_stays_a_number() -> None:
    assert ORDERS.decode(b"\x20\x09")["state"] == 9


def test_unknown_fields_are_left_out() -> None:
    assert ORDERS.decode(b"\xf8\x06\x01") == ORDERS.decode(b"")


@pytest.mark.parametrize(
    "body", [b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x01\xff", b"\xff" * 30]
)
def test_bytes_that_are_no_message_do_not_fit(body: bytes) -> None:
    with pytest.raises(BodyMismatch, match=r"shop\.Order"):
        ORDERS.decode(body)


def test_depth_is_bounded() -> None:
    body = b""
    for _ in range(150):
        body = b"\x32" + _varint(len(body)) + body
    with pytest.raises(BodyMismatch):
        ORDERS.decode(body)


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(1 << 62, 0), (253_402_300_800, 0), (0, -1), (-(1 << 62), 5)]
)
def test_a_time_that_is_none_does_not_fit(seconds: int, nanos: int) -> None:
    inner = Timestamp(seconds=seconds, nanos=nanos).SerializeToString()
    with pytest.raises(BodyMismatch):
        ORDERS.decode(b"\x2a" + _varint(len(inner)) + inner)


@pytest.mark.parametrize(
    "value",
    [
        {"unknown": 1}, {"id": 7}, {"state": "LOST"}, {"price": 3}, {"price": {"cents": 1 << 63}},
        {"counts": {"x": -1}}, {"tags": [1]}, {"tags": 1}, {"at": datetime(2030, 1, 1)},
        {"id": "\ud800"}, 3, None, "text", {"counts": 3}, {3: 4}, Timestamp(),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(value: Any) -> None:
    with pytest.raises(BodyMismatch):
        ORDERS.encode(value)


def test_a_message_of_the_library_is_encoded() -> None:
    stamp = ProtobufBodies(order_files(), "google.protobuf.Timestamp")
    assert stamp.encode(Timestamp(seconds=1)) == b"\x08\x01"
    assert stamp.decode(b"\x08\x01") == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=1)


def test_places_name_messages_of_the_last_file() -> None:
    first = ProtobufBodies(order_files())
    assert first.descriptor.full_name == "shop.Order"
    assert first.place == (0,)
    assert first.at((1,)).descriptor.full_name == "shop.Other"
    line = first.at((0, 1))
    assert line.descriptor.full_name == "shop.Order.Line"
    assert line.place == (0, 1)
    assert line.decode(b"\x0a\x01x") == {"sku": "x"}
    for place in ((2,), (0, 9), (1, 0)):
        with pytest.raises(BodyMismatch, match="no message at"):
            first.at(place)


def test_a_message_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(SchemaInvalid, match=r"no message shop\.Oder: there are shop\.Order"):
        ProtobufBodies(order_files(), "shop.Oder")


@given(st.binary(max_size=80))
def test_any_bytes_are_a_value_or_do_not_fit(body: bytes) -> None:
    with contextlib.suppress(BodyMismatch):
        ORDERS.decode(body)


def _varint(number: int) -> bytes:
    packed = bytearray()
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)
