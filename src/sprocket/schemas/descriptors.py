"""Protobuf's descriptors: files of them taken apart, and made into a pool of their own. Pure.

A descriptor set is what `protoc --include_imports --descriptor_set_out=orders.desc orders.proto`
writes: each file after those that it imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from sprocket.schemas.errors import SchemaInvalid

#: A descriptor set is generated; a larger one is a mistake, or an attack.
DESCRIPTOR_BYTES_MAX = 8 << 20
_FILES_MAX = 1_000
#: The files that come with Protobuf, which sets without imports leave out.
_WELL_KNOWN = (
    "any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers", "type",
    "source_context", "api", "descriptor",
)  # fmt: skip


def files_of(descriptor_set: bytes) -> tuple[bytes, ...]:
    """The files of a descriptor set, each serialized.

    Raises:
        SchemaInvalid: it is none, or too large.
    """
    if len(descriptor_set) > DESCRIPTOR_BYTES_MAX:
        raise SchemaInvalid(f"a descriptor set of {len(descriptor_set)} bytes is too large")
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set)
    except DecodeError as error:
        raise SchemaInvalid(f"it is no descriptor set of Protobuf: {error}") from None
    if not found.file or not all(each.name for each in found.file):
        raise SchemaInvalid("it is no descriptor set of Protobuf: it has no files")
    return tuple(each.SerializeToString() for each in found.file)


def named(file: bytes, name: str) -> bytes:
    """A file under another name.

    Raises:
        SchemaInvalid: it is no file.
    """
    found = _file(file)
    found.name = name
    return found.SerializeToString()


def pool_of(files: Sequence[bytes]) -> tuple[descriptor_pool.DescriptorPool, Any]:
    """A pool of files, and the descriptor of the last.

    Raises:
        SchemaInvalid: a file is none, lacks an import, or contradicts another.
    """
    if not 0 < len(files) <= _FILES_MAX:
        raise SchemaInvalid(f"{len(files)} files of Protobuf: 1 to {_FILES_MAX} make a schema")
    if sum(map(len, files)) > DESCRIPTOR_BYTES_MAX:
        raise SchemaInvalid("the files of Protobuf are too large together")
    pool, protos = descriptor_pool.DescriptorPool(), [_file(each) for each in files]
    there = {each.name for each in protos}
    try:
        for each in protos:
            for name in each.dependency:
                if name not in there:
                    _add_well_known(pool, name)
            pool.Add(each)
        return pool, pool.FindFileByName(protos[-1].name)
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise SchemaInvalid(f"the files of Protobuf do not fit together: {error}") from None


def _file(content: bytes) -> descriptor_pb2.FileDescriptorProto:
    try:
        found = descriptor_pb2.FileDescriptorProto.FromString(content)
    except DecodeError as error:
        raise SchemaInvalid(f"it is no descriptor of a Protobuf file: {error}") from None
    return found


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem not in _WELL_KNOWN or name != f"google/protobuf/{stem}.proto":
        raise SchemaInvalid(f"the import {name} is missing: make the set with --include_imports")
    from importlib import import_module

    import_module(f"google.protobuf.{stem}_pb2")
    proto = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(proto)
    for inner in proto.dependency:
        _add_well_known(pool, inner)
    pool.Add(proto)
