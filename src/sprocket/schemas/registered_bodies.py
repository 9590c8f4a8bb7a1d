"""Bodies with the number of their schema in front."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sprocket.base.errors import UsageError
from sprocket.schemas import framing
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from sprocket.schemas.registered import RegisteredSchema, SchemaKind, SchemaSource
from sprocket.schemas.registry import SchemaCache

#: How long the newest schema of a subject is taken for the newest.
_LATEST_SECONDS = 300.0


class RegisteredBodies:
    """Bodies whose schemas a registry has.

    Args:
        source: the registry.
        kind: of all bodies; None for whatever the registry says.
        reader: a schema by which all values are given: of Avro, by its rules of resolution, or of
            Protobuf or JSON, whose bodies are then not looked up.
        writes: the schema to encode by: a number, or a subject whose newest schema is taken.
            Schemas are never registered.
        monotonic: the time in seconds.
    """

    def __init__(
        self,
        source: SchemaSource,
        *,
        kind: SchemaKind | None = None,
        reader: AvroBodies | ProtobufBodies | JsonBodies | None = None,
        writes: int | str | None = None,
        monotonic: Callable[[], float],
    ) -> None:
        self._source = source
        self._kind = kind
        self._reader = reader
        self._writes = writes
        self._now = monotonic
        self._codecs = SchemaCache(source, self._made, monotonic)
        #: The number of the subject's newest schema, and until when.
        self._latest: tuple[int, float] | None = None

    @property
    def content_type(self) -> str:
        """The media type of bodies; before a schema was seen, that of any bytes."""
        kind = self._kind
        if kind is None and self._latest is not None:
            return self._codecs.get(self._latest[0]).content_type
        return _TYPES.get(kind, "application/octet-stream")

    def decode(self, body: bytes) -> Any:
        """The value in a body; see `BodyCodec.decode`. It blocks unless `prepare` was awaited."""
        schema_id, content = framing.split(body)
        if isinstance(self._reader, ProtobufBodies):
            return self._reader.decode(framing.split_place(content)[1])
        codec = self._codec(schema_id)
        if isinstance(codec, ProtobufBodies):
            place, content = framing.split_place(content)
            codec = codec.at(place)
        return codec.decode(content)

    def json_text(self, body: bytes) -> bytes | None:
        """The text behind the number, if it is JSON; None for other bodies.

        Raises:
            BodyMismatch, RegistryUnavailable: as `decode`.
        """
        schema_id, content = framing.split(body)
        if self._kind is None:
            return content if isinstance(self._codec(schema_id), JsonBodies) else None
        return content if self._kind is SchemaKind.JSON else None

    def encode(self, value: Any) -> bytes:
        """The body of a value; see `BodyCodec.encode`. It blocks unless `prepare` was awaited."""
        schema_id = self._write_id()
        codec = self._codec(schema_id)
        if isinstance(codec, ProtobufBodies):
            if isinstance(self._reader, ProtobufBodies):
                codec = codec.named(self._reader.descriptor.full_name)
            content = framing.join_place(codec.place, codec.encode(value))
        else:
            content = codec.encode(value)
        return framing.join(schema_id, content)

    async def prepare(self, body: bytes | None) -> None:
        """Fetches a schema that is not known; see `BodyCodec.prepare`."""
        if body is None:
            if isinstance(self._writes, str) and self._is_old():
                found = await asyncio.to_thread(self._source.latest, self._writes)
                self._remember(found)
            await self._codecs.prepare(self._write_id())
            return
        try:
            schema_id = framing.split(body).schema_id
        except BodyMismatch:
            return
        if not isinstance(self._reader, ProtobufBodies | JsonBodies):
            await self._codecs.prepare(schema_id)

    def shape(self) -> BodyCodec:
        """The codec whose schema says what values look like: the reader's, or else the one to
        encode by; it blocks.

        Raises:
            UsageError, SchemaNotFound, RegistryUnavailable: as `encode`.
        """
        return self._reader or self._codec(self._write_id())

    def _codec(self, schema_id: int) -> BodyCodec:
        if isinstance(self._reader, JsonBodies):
            return self._reader
        return self._codecs.get(schema_id)

    def _write_id(self) -> int:
        if isinstance(self._writes, int):
            return self._writes
        if self._writes is None:
            raise UsageError("by which schema? Name its number, or a subject of the registry")
        if self._is_old():
            self._remember(self._source.latest(self._writes))
        assert self._latest is not None, "it was just asked for"
        return self._latest[0]

    def _is_old(self) -> bool:
        return self._latest is None or self._now() >= self._latest[1]

    def _remember(self, found: RegisteredSchema) -> None:
        self._latest = (found.schema_id, self._now() + _LATEST_SECONDS)

    def _made(self, schema: RegisteredSchema) -> BodyCodec:
        if self._kind is not None and schema.kind is not self._kind:
            raise SchemaInvalid(f"it is {schema.kind}, not {self._kind}")
        if schema.kind is SchemaKind.AVRO:
            reader = self._reader if isinstance(self._reader, AvroBodies) else None
            return AvroBodies(schema.text, named=schema.named, reader=reader)
        if schema.kind is SchemaKind.PROTOBUF:
            return ProtobufBodies(schema.files)
        return JsonSchemaBodies(schema.text, references=schema.references)


_TYPES: dict[SchemaKind | None, str] = {
    SchemaKind.AVRO: AvroBodies.content_type,
    SchemaKind.PROTOBUF: ProtobufBodies.content_type,
    SchemaKind.JSON: JsonBodies.content_type,
}
