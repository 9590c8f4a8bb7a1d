"""Descriptor sets are taken apart and checked."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from sprocket.schemas.descriptors import files_of, named, pool_of
from sprocket.schemas.errors import SchemaInvalid
from tests.schemas.parts import order_files, order_set


def test_a_set_has_its_files_in_order_and_a_pool_has_the_last() -> None:
    files = files_of(order_set())
    assert len(files) == 2
    assert pool_of(files)[1].name == "shop.proto"


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"\x0a\x00", b'{"type":"record"}'])
def test_what_is_no_set_is_refused(content: bytes) -> None:
    with pytest.raises(SchemaInvalid):
        files_of(content)


def test_an_import_that_is_missing_is_named() -> None:
    with pytest.raises(SchemaInvalid, match=r"money\.proto is missing.*include_imports"):
        pool_of(order_files()[1:])


def test_files_that_contradict_each_other_are_refused() -> None:
    money = order_files()[0]
    with pytest.raises(SchemaInvalid):
        pool_of([money, named(money, "other.proto")])
    with pytest.raises(SchemaInvalid):
        pool_of([])


def test_a_pool_knows_nothing_of_another() -> None:
    changed = descriptor_pb2.FileDescriptorProto(name="money.proto", package="shop")
    changed.message_type.add(name="Money")
    assert pool_of([changed.SerializeToString()])[1] is not pool_of(order_files()[:1])[1]
