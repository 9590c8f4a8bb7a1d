"""Bodies as objects of a type: dataclasses, msgspec's structs, pydantic's models.

pydantic is no dependency: a type with its methods `model_validate` and `model_dump` is taken for a
model, and keeps pydantic's own rules, also of what JSON makes of NaN.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

import msgspec
import msgspec.inspect

from sprocket.base.errors import UsageError
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.registered_bodies import RegisteredBodies

T = TypeVar("T")

#: What codecs other than JSON take as it is.
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


class TypedBodies(Generic[T]):
    """Bodies of one type, by a codec.

    Args:
        kind: the type: anything that msgspec converts to, or a model of pydantic.
        codec: of the bodies.

    Raises:
        UsageError: it is another type, to which no body would ever fit.
    """

    def __init__(self, kind: type[T], codec: BodyCodec) -> None:
        self._kind = kind
        self._codec = codec
        self._is_model = hasattr(kind, "model_validate") and hasattr(kind, "model_dump")
        if not self._is_model:
            _check_kind(kind)

    def decode(self, body: bytes) -> T:
        """The object in a body.

        Raises:
            BodyMismatch: the body does not fit the type, or the codec's schema.
            RegistryUnavailable: a schema has to be fetched, and cannot be.
        """
        # Checks the depth, numbers and texts that JSON does not have, for models too.
        value = self._codec.decode(body)
        text = self._json_text(body)
        kind: Any = self._kind
        try:
            if self._is_model:
                made = (
                    kind.model_validate(value) if text is None else kind.model_validate_json(text)
                )
                return cast(T, made)
            if text is not None:
                return msgspec.convert(value, self._kind, str_keys=True)
            return msgspec.convert(value, self._kind, builtin_types=_KEPT)
        except (msgspec.ValidationError, ValueError, RecursionError) as error:
            name = getattr(self._kind, "__name__", str(self._kind))
            raise BodyMismatch(f"it is no {name}: {_short(error)}") from None

    def _json_text(self, body: bytes) -> bytes | None:
        """The JSON in a body; None for other formats, whose values have their types already."""
        if isinstance(self._codec, JsonBodies):
            return body
        return self._codec.json_text(body) if isinstance(self._codec, RegisteredBodies) else None

    async def prepare(self, body: bytes) -> None:
        """Fetches what `decode` needs; see `BodyCodec.prepare`."""
        await self._codec.prepare(body)


def encoded(value: Any, codec: BodyCodec) -> bytes:
    """The body of an object.

    Raises:
        BodyMismatch: it does not fit the codec's schema, or cannot be encoded at all.
        RegistryUnavailable: a schema has to be fetched, and cannot be.
    """
    try:
        if hasattr(value, "model_dump") and hasattr(value, "model_dump_json"):
            if isinstance(codec, JsonBodies):
                return codec.checked(value.model_dump_json().encode())
            return codec.encode(value.model_dump())
        if hasattr(value, "SerializeToString"):  # a message of Protobuf's library
            return codec.encode(value)
        kept = () if isinstance(codec, JsonBodies) else _KEPT
        plain = msgspec.to_builtins(value, builtin_types=kept, str_keys=not kept)
    except (TypeError, ValueError, RecursionError) as error:
        name = type(value).__name__
        raise BodyMismatch(f"a {name} cannot be encoded: {_short(error)}") from None
    return codec.encode(plain)


def _check_kind(kind: Any) -> None:
    try:
        is_known = not isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.CustomType)
    except TypeError:
        is_known = False
    except NameError:  # one of its fields has a type that is defined further below
        return
    if not is_known:
        name = getattr(kind, "__name__", repr(kind))
        raise UsageError(
            f"bodies are not converted to {name}: it is no dataclass, no struct of msgspec, no "
            "model of pydantic, and no plain type"
        )


def _short(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return " ".join(str(error).split())[:300] or type(error).__name__
