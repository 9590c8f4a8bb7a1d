"""Schemas that several tests use."""

from __future__ import annotations

import json

from google.protobuf import descriptor_pb2

from sprocket.schemas.descriptors import files_of

AVRO_ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "count", "type": ["null", "long"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
            {
                "name": "state",
                "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]},
                "default": "NEW",
            },
        ],
    }
)
ORDER = {"id": "o-1", "amount": 2.5, "count": 3, "tags": ["a"], "state": "PAID"}
#: A list of nodes, each with the next.
AVRO_CHAIN = json.dumps(
    {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
)

_FIELD = descriptor_pb2.FieldDescriptorProto


def order_set() -> bytes:
    """A descriptor set: `money.proto`, and `shop.proto` that imports it and a timestamp."""
    found = descriptor_pb2.FileDescriptorSet()
    money = found.file.add(name="money.proto", package="shop", syntax="proto3")
    amount = money.message_type.add(name="Money")
    amount.field.add(name="cents", number=1, type=_FIELD.TYPE_INT64, label=1)
    amount.field.add(name="currency", number=2, type=_FIELD.TYPE_STRING, label=1)
    shop = found.file.add(
        name="shop.proto", package="shop", syntax="proto3",
        dependency=["money.proto", "google/protobuf/timestamp.proto",
                    "google/protobuf/wrappers.proto", "google/protobuf/any.proto"],
    )  # fmt: skip
    state = shop.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    order = shop.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=_FIELD.TYPE_STRING, label=1)
    order.field.add(
        name="price", number=2, type=_FIELD.TYPE_MESSAGE, label=1, type_name=".shop.Money"
    )
    order.field.add(name="tags", number=3, type=_FIELD.TYPE_STRING, label=3)
    order.field.add(name="state", number=4, type=_FIELD.TYPE_ENUM, label=1, type_name=".shop.State")
    order.field.add(
        name="at", number=5, type=_FIELD.TYPE_MESSAGE, label=1,
        type_name=".google.protobuf.Timestamp",
    )  # fmt: skip
    order.field.add(
        name="next", number=6, type=_FIELD.TYPE_MESSAGE, label=1, type_name=".shop.Order"
    )
    order.field.add(
        name="score", number=7, type=_FIELD.TYPE_MESSAGE, label=1,
        type_name=".google.protobuf.Int64Value",
    )  # fmt: skip
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=_FIELD.TYPE_UINT64, label=1)
    order.field.add(
        name="counts", number=8, type=_FIELD.TYPE_MESSAGE, label=3,
        type_name=".shop.Order.CountsEntry",
    )  # fmt: skip
    order.field.add(name="raw", number=9, type=_FIELD.TYPE_BYTES, label=1)
    line = order.nested_type.add(name="Line")
    line.field.add(name="sku", number=1, type=_FIELD.TYPE_STRING, label=1)
    shop.message_type.add(name="Other").field.add(
        name="n", number=1, type=_FIELD.TYPE_INT32, label=1
    )
    return found.SerializeToString()


def order_files() -> tuple[bytes, ...]:
    """The files of that set."""
    return files_of(order_set())
