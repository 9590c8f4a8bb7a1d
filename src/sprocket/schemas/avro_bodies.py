"""Bodies of Avro, in its binary encoding without a header. Pure.

fastavro decodes and encodes; `avro_bounds` checks before it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import msgspec

from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bounds import checker
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid, reason_of
from sprocket.schemas.json_bodies import check_depth

#: A schema is written by people or generated; a larger one is a mistake, or an attack.
SCHEMA_BYTES_MAX = 1 << 20


class AvroBodies:
    """Avro by a schema.

    Args:
        schema: by which bodies were written, as a JSON text.
        named: texts of schemas whose names the schema refers to; each may refer to those before.
        reader: a schema by which values are given, resolved by Avro's rules; None for the same.

    Raises:
        SchemaInvalid: a text is no schema of Avro.
        UsageError: the package fastavro is missing.
    """

    content_type = "application/avro"

    def __init__(
        self, schema: str, *, named: Sequence[str] = (), reader: AvroBodies | None = None
    ) -> None:
        self._fastavro = _fastavro()
        self._reader = reader
        #: The schema as `fastavro.parse_schema` gives it, and those of all names in it.
        self.names: dict[str, Any] = {}
        try:
            for each in named:
                self._parsed(each)
            self.schema = self._parsed(schema)
            self._check = checker(self.schema, self.names)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise SchemaInvalid(f"it is no schema of Avro: {_short(error)}") from None

    def decode(self, body: bytes) -> Any:
        """The value in a body; see `BodyCodec.decode`."""
        self._check(body)
        reader = None if self._reader is None else self._reader.schema
        try:
            return self._fastavro.schemaless_reader(io.BytesIO(body), self.schema, reader)
        except Exception as error:  # fastavro has errors of a dozen kinds, and no base of them
            raise BodyMismatch(f"it does not fit the schema: {_short(error)}") from None

    def encode(self, value: Any) -> bytes:
        """The body of a value; see `BodyCodec.encode`."""
        written = io.BytesIO()
        try:
            self._fastavro.schemaless_writer(written, self.schema, value, strict_allow_default=True)
            body = written.getvalue()
        except Exception as error:  # as above
            raise BodyMismatch(f"it does not fit the schema: {_short(error)}") from None
        self._check(body)  # fastavro writes a long where an int belongs, and rounds decimals
        return body

    async def prepare(self, body: bytes | None) -> None:
        """Nothing has to be fetched."""

    def _parsed(self, text: str) -> Any:
        # fastavro parses nested types by recursion, so the depth is checked before.
        content = text.encode("utf-8", "surrogatepass")
        if len(content) > SCHEMA_BYTES_MAX:
            raise SchemaInvalid(f"a schema of {len(content)} bytes; {SCHEMA_BYTES_MAX} at most")
        try:
            value = msgspec.json.decode(content)
            check_depth(content, value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BodyMismatch) as error:
            raise SchemaInvalid(f"the schema of Avro is no JSON: {_short(error)}") from None
        try:
            return self._fastavro.parse_schema(value, named_schemas=self.names)
        except Exception as error:  # of fastavro, as above
            raise SchemaInvalid(f"it is no schema of Avro: {_short(error)}") from None


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise UsageError("Avro needs a package: pip install 'sprocketmq[avro]'") from None
    return fastavro


def _short(error: BaseException) -> str:
    name, reason = type(error).__name__, reason_of(error)
    return name if reason == name else f"{name} {reason}"
