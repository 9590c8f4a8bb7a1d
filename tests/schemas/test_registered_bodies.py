"""Bodies with a number in front are decoded by the schema of that number."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import BodyMismatch, SchemaNotFound
from sprocket.schemas.folder_registry import FolderRegistry
from sprocket.schemas.framing import join, split
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from sprocket.schemas.registered import SchemaKind
from sprocket.schemas.registered_bodies import RegisteredBodies
from tests.schemas.parts import AVRO_ORDER, ORDER, order_files, order_set


@pytest.fixture
def folder(tmp_path: Path) -> FolderRegistry:
    (tmp_path / "1.avsc").write_text(AVRO_ORDER)
    (tmp_path / "2.desc").write_bytes(order_set())
    (tmp_path / "3.json").write_text('{"properties": {"a": {"type": "integer"}}}')
    (tmp_path / "4.avsc").write_text("nonsense")
    return FolderRegistry(tmp_path)


def codec(folder: FolderRegistry, **given: object) -> RegisteredBodies:
    return RegisteredBodies(folder, monotonic=lambda: 0.0, **given)  # type: ignore[arg-type]


def test_one_codec_reads_all_kinds(folder: FolderRegistry) -> None:
    bodies = codec(folder)
    assert bodies.decode(codec(folder, writes=1).encode(ORDER)) == ORDER
    assert bodies.decode(codec(folder, writes=3).encode({"a": 1})) == {"a": 1}
    found = bodies.decode(codec(folder, writes=2).encode({"id": "o-1"}))
    assert found["id"] == "o-1"
    assert bodies.decode(join(2, b"\x02\x02\x08\x07")) == {"n": 7}  # the second message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "too few"), (b'{"a":1}', "byte 123"), (join(9, b"x"), r"no 9\.avsc"),
        (join(3, b'{"a":"1"}'), r"at \$\.a: '1' is not of type 'integer'"),
        (join(4, b"x"), "schema 4 of the registry cannot be used"), (join(1, b"x"), "ends before"),
        (join(2, b""), "ends within"), (join(2, b"\x02\x20"), "no message at"),
    ],
)  # fmt: skip
def test_a_body_that_does_not_fit_says_why(
    folder: FolderRegistry, body: bytes, reason: str
) -> None:
    with pytest.raises(BodyMismatch, match=reason):
        codec(folder).decode(body)


def test_a_kind_that_was_asked_for_is_kept_to(folder: FolderRegistry) -> None:
    with pytest.raises(SchemaNotFound, match="it is protobuf, not avro"):
        codec(folder, kind=SchemaKind.AVRO).decode(join(2, b"\0"))
    looked_up = codec(folder, kind=SchemaKind.JSON, writes=3)
    assert looked_up.decode(looked_up.encode({"a": 1})) == {"a": 1}
    for call in (
        lambda: looked_up.encode({"a": "1"}),
        lambda: looked_up.decode(join(3, b'{"a":"1"}')),
    ):
        with pytest.raises(BodyMismatch, match="not of type 'integer'"):
            call()
    # With a schema of one's own the numbers are skipped.
    plain = codec(folder, kind=SchemaKind.JSON, reader=JsonBodies())
    assert plain.decode(join(99, b"{}")) == {}
    given = codec(folder, kind=SchemaKind.JSON, reader=JsonSchemaBodies('{"type": "array"}'))
    assert given.decode(join(99, b"[]")) == []
    with pytest.raises(BodyMismatch, match="not of type 'array'"):
        given.decode(join(99, b"{}"))


def test_a_reader_s_schema_gives_the_values(folder: FolderRegistry) -> None:
    newer = json.loads(AVRO_ORDER)
    newer["fields"] = newer["fields"][:1]
    bodies = codec(folder, reader=AvroBodies(json.dumps(newer)))
    assert bodies.decode(codec(folder, writes=1).encode(ORDER)) == {"id": "o-1"}
    other = codec(folder, reader=ProtobufBodies(order_files(), "shop.Other"))
    assert other.decode(join(99, b"\0\x08\x07")) == {"n": 7}


def test_preparing_reads_what_decoding_needs(folder: FolderRegistry, tmp_path: Path) -> None:
    async def story() -> None:
        bodies = codec(folder, writes=1)
        await bodies.prepare(None)
        body = bodies.encode(ORDER)
        (tmp_path / "1.avsc").unlink()
        assert bodies.decode(body) == ORDER
        await bodies.prepare(b"nothing in front")
        await bodies.prepare(join(9, b""))

    asyncio.run(story())


def test_encoding_needs_a_schema_that_is_named(folder: FolderRegistry) -> None:
    with pytest.raises(UsageError, match="which schema"):
        codec(folder).encode({})
    assert split(codec(folder, writes=1).encode(ORDER)).schema_id == 1
    with pytest.raises(SchemaNotFound):
        codec(folder, writes="orders-value").encode(ORDER)
