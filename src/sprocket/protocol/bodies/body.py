"""The base of all JSON bodies: it reads and writes standard JSON and fastjson's dialect.

A body's fields are declared in the order of their wire names, which is the order in which fastjson
writes them. Fields whose default comes from `always` are always written, as Java writes its
primitives and empty collections; a None is left out, as Java leaves null out.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import lenient_json
from sprocket.protocol.command import Buffer, Long
from sprocket.protocol.fields import MALFORMED

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoders: dict[type[Any], msgspec.json.Decoder[Any] | None] = {}


def always(value: T, name: str | None = None) -> T:
    """The default of a field that is written even when it has its default value.

    Args:
        value: the default; a list or dict is copied.
        name: the wire name, if it does not follow from the attribute's.
    """
    copied: Any = value
    made = copied.copy if isinstance(value, list | dict) else lambda: value
    return cast(T, msgspec.field(default_factory=made, name=name))


class Body(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base of all declared JSON bodies.

    `is_dialect`: Java writes this body with keys that are no texts, for every client.
    """

    is_dialect: ClassVar[bool] = False

    def encode(self) -> bytes:
        """The body as Java writes it."""
        if self.is_dialect:
            return lenient_json.write(self)
        return _encoder.encode(self)

    @classmethod
    def decode(cls, data: Buffer, *, bytes_max: int = lenient_json.BYTES_MAX) -> Self:
        """Decodes standard JSON or fastjson's dialect. Unknown and null fields are ignored.

        Args:
            data: the body as received.
            bytes_max: the longest accepted body that is no standard JSON, which is slow to read.

        Raises:
            RemoteProtocolError: it is not such a body.
        """
        decoder = _decoder_of(cls)
        if decoder is not None:
            try:
                return cast(Self, decoder.decode(data))
            except MALFORMED:
                pass
        return cls.of_value(lenient_json.parse(data, bytes_max=bytes_max))

    @classmethod
    def of_value(cls, value: Any) -> Self:
        """As `decode`, for JSON that is read already.

        Raises:
            RemoteProtocolError: it is not such a body.
        """
        try:
            return msgspec.convert(cls._mended(_without_nulls(value)), cls, strict=False)
        except MALFORMED as error:
            raise RemoteProtocolError(f"no {cls.__name__}: {error}") from None

    @classmethod
    def of_request(cls, data: Buffer) -> Self:
        """As `decode` for a request to a server, whose event loop waits meanwhile.

        Raises:
            RemoteProtocolError: it is not such a body.
        """
        return cls.decode(data, bytes_max=lenient_json.REQUEST_BYTES_MAX)

    @classmethod
    def _mended(cls, value: Any) -> Any:
        """Converts values that other clients write in another way to Java's; for subclasses."""
        return value


def _decoder_of(kind: type[Any]) -> msgspec.json.Decoder[Any] | None:
    """The cached decoder; None for a body with structs as keys, impossible in standard JSON."""
    if kind not in _decoders:
        try:
            _decoders[kind] = msgspec.json.Decoder(kind)
        except TypeError:
            _decoders[kind] = None
    return _decoders[kind]


def _without_nulls(value: Any) -> Any:
    """Drops null entries, and parses a key that is the JSON text of an object."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict) or isinstance(value, lenient_json.ObjectKey):
        return value
    return {_key(key): _without_nulls(inner) for key, inner in value.items() if inner is not None}


def _key(key: Any) -> Any:
    if isinstance(key, str) and key.startswith("{"):
        inner = lenient_json.parse(key.encode("utf-8", "replace"), depth_max=1)
        return lenient_json.ObjectKey(inner) if isinstance(inner, dict) else key
    return key


class DataVersion(Body):
    """The version of a table; it differs once the table has changed. Source: DataVersion."""

    counter: Long = always(0)
    state_version: Long = always(0)
    timestamp: Long = always(0)

    def after_change(self, now_ms: int) -> DataVersion:
        """The version of the table after one more change at `now_ms`."""
        return DataVersion(
            counter=self.counter + 1, state_version=self.state_version, timestamp=now_ms
        )


class Queue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """A queue; it also serves as a key. Source: MessageQueue."""

    broker_name: str = ""
    queue_id: Long = 0
    topic: str = ""
