"""A schema as a registry has it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SchemaKind(StrEnum):
    """The kinds of schemas, by the names that users and folders know."""

    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with its number.

    Attributes:
        schema_id: the number that bodies begin with.
        kind: the format of the bodies.
        text: of Avro or JSON; empty for Protobuf.
        named: texts of the schemas that an Avro schema refers to, each after those it needs.
        references: of JSON: the names by which it refers to other schemas, and their texts.
        files: of Protobuf: serialized `FileDescriptorProto`s, each after those that it imports.
    """

    schema_id: int
    kind: SchemaKind
    text: str = ""
    named: tuple[str, ...] = ()
    references: tuple[tuple[str, str], ...] = ()
    files: tuple[bytes, ...] = ()


class SchemaSource(Protocol):
    """Where schemas come from; its functions do I/O and keep no state, so threads may call them."""

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of a number.

        Raises:
            SchemaNotFound: there is none.
            SchemaInvalid: there is something else than a schema.
            RegistryUnavailable: the source does not answer.
        """
        ...

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject; errors as `by_id`."""
        ...
