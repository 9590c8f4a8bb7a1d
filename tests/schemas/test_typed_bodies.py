"""Bodies are objects of a type, by every codec; what does not fit says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from sprocket.schemas.typed_bodies import TypedBodies, encoded
from tests.schemas.parts import AVRO_ORDER, order_files

pydantic = pytest.importorskip("pydantic")


@dataclass
class OrderData:
    id: str
    amount: float = 0.0
    tags: list[str] = field(default_factory=list)


class OrderStruct(msgspec.Struct):
    id: str
    amount: float = 0.0
    tags: list[str] = []


class OrderModel(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    id: str
    amount: float = 0.0
    tags: list[str] = pydantic.Field(default_factory=list)


KINDS = (OrderData, OrderStruct, OrderModel)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", [JsonBodies(), AvroBodies(AVRO_ORDER)])
def test_every_kind_of_object_goes_through_every_codec(kind: Any, codec: BodyCodec) -> None:
    order = kind(id="o-1", amount=2.5, tags=["a"])
    assert TypedBodies(kind, codec).decode(encoded(order, codec)) == order


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_of_another_shape_does_not_fit(kind: Any) -> None:
    bodies = TypedBodies(kind, JsonBodies())
    for body in (b"{", b"[]", b"{}", b'{"id":7}', b'{"id":"a","amount":"much"}', b"[" * 1000):
        with pytest.raises(BodyMismatch):
            bodies.decode(body)
    assert bodies.decode(b'{"id":"a","unknown":1}').id == "a"


class Paid(msgspec.Struct):
    id: str
    at: datetime
    raw: bytes


def test_times_and_bytes_stay_what_they_are_where_the_codec_has_them() -> None:
    paid = Paid("o-1", datetime(2030, 1, 31, 8, tzinfo=UTC), b"\xff")
    codec = ProtobufBodies(order_files(), "shop.Order")
    body = encoded(paid, codec)
    assert codec.decode(body)["at"] == paid.at
    assert TypedBodies(Paid, codec).decode(body) == paid
    as_json = encoded(paid, JsonBodies())
    assert b'"raw":"/w=="' in as_json
    assert TypedBodies(Paid, JsonBodies()).decode(as_json) == paid


class Sum(msgspec.Struct):
    total: Decimal
    by_shop: dict[int, float]


def test_json_has_decimals_as_texts_and_keys_as_texts() -> None:
    total = Sum(Decimal("1.20"), {7: 0.5})
    assert encoded(total, JsonBodies()) == b'{"total":"1.20","by_shop":{"7":0.5}}'
    assert TypedBodies(Sum, JsonBodies()).decode(encoded(total, JsonBodies())) == total


@pytest.mark.parametrize(
    "value",
    [
        OrderStruct("a", math.nan), OrderData("a", math.inf), OrderStruct("\ud800"), object(),
        {"a": object()}, lambda: 1,
    ],
)  # fmt: skip
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(BodyMismatch):
        encoded(value, JsonBodies())


def test_plain_values_and_messages_of_protobuf_are_sent_too() -> None:
    assert encoded({"a": [1]}, JsonBodies()) == b'{"a":[1]}'
    codec = ProtobufBodies(order_files(), "google.protobuf.Int64Value")
    from google.protobuf.wrappers_pb2 import Int64Value

    assert encoded(Int64Value(value=7), codec) == b"\x08\x07"
    with pytest.raises(BodyMismatch):
        encoded(OrderStruct("a", tags=[3]), AvroBodies(AVRO_ORDER))  # type: ignore[list-item]


class NoData:
    """A class whose objects nobody can make of JSON."""


@pytest.mark.parametrize("kind", [NoData, "OrderData", 7, type(order_files)])
def test_a_type_to_which_no_body_fits_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(UsageError, match="bodies are not converted to "):
        TypedBodies(kind, JsonBodies())


@pytest.mark.parametrize("kind", [OrderData | None, dict, list[OrderStruct], str, Any, None])
def test_plain_types_and_those_made_of_others_are_taken(kind: Any) -> None:
    TypedBodies(kind, JsonBodies())


def test_a_type_may_name_another_one_that_comes_later() -> None:
    @dataclass
    class Early:
        later: "Later"  # type: ignore[name-defined] # noqa: F821, UP037

    TypedBodies(Early, JsonBodies())
