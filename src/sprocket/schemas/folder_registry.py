"""A folder of schemas as a registry: `17.avsc` is the schema with the number 17.

`.avsc` is Avro, `.json` JSON Schema, and `.desc` a descriptor set of Protobuf.
"""

from __future__ import annotations

from pathlib import Path

from sprocket.base.decoding import decode_strictly
from sprocket.schemas.avro_bodies import SCHEMA_BYTES_MAX
from sprocket.schemas.descriptors import DESCRIPTOR_BYTES_MAX, files_of
from sprocket.schemas.errors import RegistryUnavailable, SchemaNotFound
from sprocket.schemas.registered import RegisteredSchema, SchemaKind

_ENDINGS = {".avsc": SchemaKind.AVRO, ".json": SchemaKind.JSON, ".desc": SchemaKind.PROTOBUF}


class FolderRegistry:
    """A `SchemaSource` of files.

    Args:
        folder: a folder with a file for each schema.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return str(self._folder)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema in the file of a number; see `SchemaSource.by_id`."""
        for ending, kind in _ENDINGS.items():
            path = self._folder / f"{schema_id}{ending}"
            if path.exists():
                return _schema(schema_id, kind, path)
        if not self._folder.is_dir():
            raise RegistryUnavailable(f"{self._folder} is no folder of schemas")
        raise SchemaNotFound(f"{self._folder} has no schema {schema_id}: no {schema_id}.avsc")

    def latest(self, subject: str) -> RegisteredSchema:
        """Refused: files have numbers and no subjects."""
        raise SchemaNotFound(f"a folder of schemas has no subject {subject}: name a number")


def _schema(schema_id: int, kind: SchemaKind, path: Path) -> RegisteredSchema:
    content = read_schema(path)
    if kind is SchemaKind.PROTOBUF:
        return RegisteredSchema(schema_id, kind, files=files_of(content))
    return RegisteredSchema(schema_id, kind, decode_strictly(content, str(path)))


def read_schema(path: Path) -> bytes:
    """The content of a file with a schema.

    Raises:
        RegistryUnavailable: it cannot be read, or is too large for a schema.
    """
    limit = max(SCHEMA_BYTES_MAX, DESCRIPTOR_BYTES_MAX)
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RegistryUnavailable(f"{path}: {reason}") from None
    if len(content) > limit:
        raise RegistryUnavailable(f"{path} is larger than a schema may be, {limit} bytes")
    return content
