"""What a user chooses of formats and schemas, checked, and the codec for it.

The choice has the schemas themselves and not the names of their files, so that it can be pickled
and used on another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sprocket.base.decoding import decode_strictly
from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.descriptors import files_of
from sprocket.schemas.errors import RegistryUnavailable, SchemaInvalid
from sprocket.schemas.folder_registry import FolderRegistry, read_schema
from sprocket.schemas.http_registry import HttpRegistry, RegistryAccess
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from sprocket.schemas.registered import SchemaKind, SchemaSource
from sprocket.schemas.registered_bodies import RegisteredBodies

#: Where schemas are: asked over HTTP, or a folder.
Registry = RegistryAccess | Path


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """How bodies are decoded and encoded.

    Attributes:
        kind: their format; None for what the registry says.
        text: the schema of Avro, or of JSON.
        files: Protobuf's, as `descriptors.files_of` gives them.
        message: the full name of Protobuf's message.
        registry: where schemas are, by the numbers in front of bodies: a URL, or a folder.
        writes: the number, or the subject, of the schema to encode by.
        is_checked: whether JSON with a number in front is checked by the registry's schema; where
            it is not, the number is skipped.
    """

    kind: SchemaKind | None
    text: str | None = None
    files: tuple[bytes, ...] = ()
    message: str | None = None
    registry: Registry | None = None
    writes: int | str | None = None
    is_checked: bool = True

    def codec(self, monotonic: Callable[[], float] = time.monotonic) -> BodyCodec:
        """The codec.

        Raises:
            SchemaInvalid: the schema is none.
            ConfigError: the registry's address is none.
            UsageError: the package for Avro, or for JSON Schema, is missing.
        """
        if self.registry is None:
            return self._given() or JsonBodies()
        return RegisteredBodies(
            source_of(self.registry),
            kind=self.kind,
            reader=self._given(),
            writes=self.writes,
            monotonic=monotonic,
        )

    def _given(self) -> AvroBodies | ProtobufBodies | JsonBodies | None:
        if self.text is not None:
            is_json = self.kind is SchemaKind.JSON
            return JsonSchemaBodies(self.text) if is_json else AvroBodies(self.text)
        if self.files:
            return ProtobufBodies(self.files, self.message)
        if self.kind is SchemaKind.JSON and not self.is_checked:
            return JsonBodies()
        return None


def source_of(registry: Registry) -> SchemaSource:
    """A registry: a folder, or one that is asked over HTTP."""
    return FolderRegistry(registry) if isinstance(registry, Path) else HttpRegistry(registry)


def choose(
    kind: str | None,
    *,
    schema: str | None = None,
    message: str | None = None,
    registry: Registry | None = None,
    writes: str | None = None,
) -> SchemaChoice:
    """What a user wrote, read and checked.

    Args:
        kind: `json`, `avro` or `protobuf`; may be None with a registry.
        schema: a file with a schema of Avro or a JSON Schema, or its JSON text; or a file with a
            descriptor set.
        message: the full name of Protobuf's message.
        registry: where schemas are.
        writes: the number, or the subject, of the schema to encode by.

    Raises:
        UsageError: these do not go together, or are none.
        ConfigError: a file cannot be read, or the address of the registry is none.
    """
    found = _kind(kind)
    if found is None and registry is None:
        raise UsageError("which format? There are json, avro and protobuf")
    if schema is not None and found is None:
        raise UsageError("a schema goes with the format json, avro or protobuf")
    if message is not None and found is not SchemaKind.PROTOBUF:
        raise UsageError("the name of a message goes with the format protobuf")
    if schema is None and registry is None and found is not SchemaKind.JSON:
        raise UsageError(f"{found} needs a schema, or a registry")
    if message is not None and schema is None:
        raise UsageError("the name of a message goes with a descriptor set")
    if writes is not None and registry is None:
        raise UsageError("the schema to write by is of a registry, and none is given")
    choice = SchemaChoice(
        found,
        text=_text(schema) if found is not SchemaKind.PROTOBUF and schema is not None else None,
        files=_files(schema) if found is SchemaKind.PROTOBUF and schema is not None else (),
        message=message,
        registry=registry,
        writes=None if writes is None else number_or_subject(writes),
    )
    choice.codec()  # so that what is wrong is said now
    return choice


def number_or_subject(text: str) -> int | str:
    """The schema that a text names: by its number, or as the newest one of a subject."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 11
    return int(text) if is_number else text


def _kind(text: str | None) -> SchemaKind | None:
    if text is None:
        return None
    try:
        return SchemaKind(text.strip().lower())
    except ValueError:
        raise UsageError(f"{text!r} is no format: there are json, avro and protobuf") from None


def _text(schema: str) -> str:
    if schema.lstrip()[:1] in ("{", "[", '"'):
        return schema
    return decode_strictly(_content(schema), schema)


def _files(schema: str) -> tuple[bytes, ...]:
    return files_of(_content(schema))


def _content(path: str) -> bytes:
    try:
        return read_schema(Path(path))
    except RegistryUnavailable as error:
        raise SchemaInvalid(str(error)) from None
