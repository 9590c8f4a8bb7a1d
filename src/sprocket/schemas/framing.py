"""The number of a schema in front of a body, as clients of Confluent's registry write it. Pure.

A byte 0, the number in 4 bytes, big-endian; for Protobuf the place of the message in its file
follows: how many steps, and the index of each, as zigzag varints; the usual place, the first
message, is a single 0. Facts: Confluent's documentation of the wire format, and its clients.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sprocket.schemas.errors import BodyMismatch

MAGIC = 0
HEAD_BYTES = 5
_HEAD = struct.Struct(">BI")
_STEPS_MAX = 100
_VARINT_BYTES_MAX = 5
#: Numbers of schemas are ints of Java.
ID_MAX = (1 << 31) - 1


class FramedBody(NamedTuple):
    """A body that begins with the number of its schema.

    Attributes:
        schema_id: the number.
        content: what follows it.
    """

    schema_id: int
    content: bytes


def split(body: bytes) -> FramedBody:
    """The number and the rest.

    Raises:
        BodyMismatch: the body does not begin with a number.
    """
    if len(body) < HEAD_BYTES:
        raise BodyMismatch(f"{len(body)} bytes are too few for the number of a schema")
    magic, schema_id = _HEAD.unpack_from(body)
    if magic != MAGIC:
        raise BodyMismatch(f"it begins with byte {magic}, not 0: no number of a schema in front")
    if schema_id > ID_MAX:
        raise BodyMismatch(f"{schema_id} is no number of a schema")
    return FramedBody(schema_id, body[HEAD_BYTES:])


def join(schema_id: int, content: bytes) -> bytes:
    """A body with its number in front.

    Raises:
        BodyMismatch: it is no number of a schema.
    """
    if not 0 <= schema_id <= ID_MAX:
        raise BodyMismatch(f"{schema_id} is no number of a schema")
    return _HEAD.pack(MAGIC, schema_id) + content


def split_place(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """The place of a Protobuf message in its file, and the rest.

    Raises:
        BodyMismatch: the content does not begin with a place.
    """
    count, at = _varint(content, 0)
    if count == 0:
        return (0,), content[at:]
    if not 0 < count <= _STEPS_MAX:
        raise BodyMismatch(f"a place of {count} steps in a Protobuf file")
    steps = []
    for _ in range(count):
        step, at = _varint(content, at)
        if step < 0:
            raise BodyMismatch(f"{step} in the place of a message in a Protobuf file")
        steps.append(step)
    return tuple(steps), content[at:]


def join_place(place: tuple[int, ...], content: bytes) -> bytes:
    """Protobuf's content with the place of its message in front."""
    if place == (0,):
        return b"\0" + content
    return b"".join(map(_packed, (len(place), *place))) + content


def _varint(content: bytes, at: int) -> tuple[int, int]:
    found = 0
    for number in range(_VARINT_BYTES_MAX):
        if at >= len(content):
            raise BodyMismatch("it ends within the place of a message in a Protobuf file")
        byte = content[at]
        at += 1
        found |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise BodyMismatch("a number of the place of a Protobuf message is too long")


def _packed(number: int) -> bytes:
    rest, packed = number << 1, bytearray()
    while rest > 0x7F:
        packed.append(rest & 0x7F | 0x80)
        rest >>= 7
    packed.append(rest)
    return bytes(packed)
