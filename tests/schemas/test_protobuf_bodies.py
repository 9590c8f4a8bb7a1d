"""Protobuf bodies are plain values of their descriptor."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from sprocket.schemas import protobuf_bodies
from sprocket.schemas.descriptors import files_of
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from tests.schemas.parts import order_files, order_set

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


def test_messages_of_known_names_and_maps_with_other_fields_are_what_they_are() -> None:
    time = descriptor_pb2.FileDescriptorProto(name="t.proto", package="google.protobuf")
    time.message_type.add(name="Timestamp").field.add(name="odd", number=1, type=5, label=1)
    time.message_type.add(name="Int64Value").field.add(name="value", number=1, type=5, label=3)
    for name, expected in (("Timestamp", {"odd": 7}), ("Int64Value", {"value": [7]})):
        codec = ProtobufBodies([time.SerializeToString()], f"google.protobuf.{name}")
        assert codec.decode(b"\x08\x07") == expected
    shop = order_set().replace(b"\x12\r\n\x05value\x18\x02", b"\x12\r\n\x05Value\x18\x02")
    renamed = ProtobufBodies(files_of(shop), "shop.Order")
    assert renamed.decode(ORDERS.encode(FULL)) == FULL
    other = order_set().replace(b"\x12\r\n\x05value\x18\x02", b"\x12\r\n\x05value\x18\x03")
    with pytest.raises(SchemaInvalid):
        ProtobufBodies(files_of(other), "shop.Order")


def test_durations_have_one_sign() -> None:
    codec = ProtobufBodies(order_files(), "google.protobuf.Duration")
    for value in (timedelta(seconds=-1.5), timedelta(days=3, microseconds=1), timedelta()):
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(1, -1), (-1, 1), (0, 1_000_000_000), (315_576_000_001, 0)]
)
def test_a_duration_that_protobuf_does_not_have_is_refused(seconds: int, nanos: int) -> None:
    body = Duration(seconds=seconds, nanos=nanos).SerializeToString()
    codec = ProtobufBodies(order_files(), "google.protobuf.Duration")
    with pytest.raises(BodyMismatch, match="a duration of"):
        codec.decode(body)
    with pytest.raises(BodyMismatch, match="is longer than"):
        codec.encode(timedelta.max)


def test_fields_that_need_no_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order within an order is two bytes, and nine fields of a dict."""
    monkeypatch.setattr(protobuf_bodies, "_FIELDS_MAX", 100)
    assert ORDERS.decode(_chain(9))
    with pytest.raises(BodyMismatch, match="more than 100 fields"):
        ORDERS.decode(_chain(12))


def test_a_number_does_not_become_infinity() -> None:
    codec = ProtobufBodies(order_files(), "google.protobuf.FloatValue")
    assert codec.decode(codec.encode({"value": math.inf})) == math.inf
    for value in ({"value": 1e300}, 1e300):
        with pytest.raises(BodyMismatch, match="1e\\+300 is too large"):
            codec.encode(value)


def test_what_is_nested_too_deep_is_not_encoded() -> None:
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"next": value}
    with pytest.raises(BodyMismatch, match="nested too deep"):
        ORDERS.encode(value)
    while value:  # Python itself would free it by recursion
        value = value.pop("next")


def _chain(count: int) -> bytes:
    body = b""
    for _ in range(count):
        body = b"\x32" + _varint(len(body)) + body
    return body


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
