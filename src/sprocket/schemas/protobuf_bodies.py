"""Bodies of Protobuf: messages of a descriptor, as plain values. Pure.

Values are those of the message's fields under their names in the file. Enums are names, and numbers
where the file has no name; bytes stay bytes; maps are dicts. A field without a value is None if
the file tells it from its default, and else the default. `google.protobuf.Timestamp` is a datetime
in UTC, `Duration` a timedelta, and of a wrapper such as `Int64Value` the value or None. `Any` keeps
its bytes: what its URL names is never fetched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import DecodeError, EncodeError, Message

from sprocket.schemas.descriptors import pool_of
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
#: Messages that hold one value and stand for it.
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)

#: Makes a plain value of one of Protobuf's, and counts the fields of messages.
_Plain = Callable[[Any, "_FieldCount"], Any]
#: From here on a finite number is infinity as a float of 32 bits.
_FLOAT_MAX = 3.4028235677973366e38
#: A message of two bytes may stand for a hundred fields, each with its default, so a body of some
#: megabytes could fill the memory. JSON of 4 MiB has fewer values.
_FIELDS_MAX = 4_000_000
#: Seconds of a `Duration`, about 10,000 years, as its file says.
_DURATION_MAX = 315_576_000_000


class ProtobufBodies:
    """Protobuf by a descriptor.

    Args:
        files: the files of the schema, each a serialized `FileDescriptorProto`, each after those
            that it imports; the message is one of the last.
        message: its full name; None for the first message of the last file.

    Raises:
        SchemaInvalid: the files are no descriptors, or have no such message.
    """

    content_type = "application/protobuf"

    def __init__(self, files: Sequence[bytes], message: str | None = None) -> None:
        self._pool, self._last = pool_of(files)
        self._made: dict[str, _Plain] = {}
        self._choose(self._found(message))

    def at(self, place: Sequence[int]) -> ProtobufBodies:
        """The same for the message at a place: its index in the file, in that message, and so on.

        Raises:
            BodyMismatch: there is none.
        """
        found: Any = None
        messages = list(self._last.message_types_by_name.values())
        for index in place:
            if index >= len(messages):
                raise BodyMismatch(f"the Protobuf file has no message at {list(place)}")
            found = messages[index]
            messages = list(found.nested_types)
        return self._for(found)

    def named(self, message: str) -> ProtobufBodies:
        """The same for another message.

        Raises:
            SchemaInvalid: there is none.
        """
        return self._for(self._found(message))

    @property
    def place(self) -> tuple[int, ...]:
        """Where the message is in its file."""
        steps: list[int] = []
        each = self.descriptor
        while each is not None:
            outer = each.containing_type
            beside = outer.nested_types if outer else each.file.message_types_by_name.values()
            names = [one.full_name for one in beside]
            steps.insert(0, names.index(each.full_name))
            each = outer
        return tuple(steps)

    def decode(self, body: bytes) -> Any:
        """The value in a body; see `BodyCodec.decode`."""
        message = self._class()
        try:
            message.ParseFromString(body)
            return self._plain(message, _FieldCount())
        except (DecodeError, OverflowError, ValueError, RecursionError) as error:
            raise BodyMismatch(f"it does not fit {self.descriptor.full_name}: {error}") from None

    def encode(self, value: Any) -> bytes:
        """The body of a dict, or of a message of Protobuf's; see `BodyCodec.encode`."""
        name = self.descriptor.full_name
        if isinstance(value, Message):
            if value.DESCRIPTOR.full_name != name:
                raise BodyMismatch(f"a {value.DESCRIPTOR.full_name} is no {name}")
        else:
            made = self._class()
            try:
                _fill(made, value)
            except RecursionError:
                raise BodyMismatch(f"it does not fit {name}: it is nested too deep") from None
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
                raise BodyMismatch(f"it does not fit {name}: {error}") from None
            value = made
        try:
            return bytes(value.SerializeToString())
        except (EncodeError, ValueError) as error:
            raise BodyMismatch(f"it does not fit {name}: {error}") from None

    async def prepare(self, body: bytes | None) -> None:
        """Nothing has to be fetched."""

    def _for(self, descriptor: Any) -> ProtobufBodies:
        if descriptor is self.descriptor:
            return self
        other = object.__new__(ProtobufBodies)
        other._pool, other._last, other._made = self._pool, self._last, self._made
        other._choose(descriptor)
        return other

    def _choose(self, descriptor: Any) -> None:
        self.descriptor = descriptor
        self._class = message_factory.GetMessageClass(descriptor)
        self._plain = _message(descriptor, self._made)

    def _found(self, name: str | None) -> Any:
        messages = self._last.message_types_by_name
        if name is None:
            if not messages:
                raise SchemaInvalid("the last Protobuf file has no message")
            return next(iter(messages.values()))
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            there = ", ".join(each.full_name for each in messages.values())[:300]
            raise SchemaInvalid(
                f"the Protobuf files have no message {name}: there are {there}"
            ) from None


def is_repeated(field: Any) -> bool:
    """Whether a field is a list or a map; libraries before 6.31 say it by a label."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry


def map_fields(field: Any) -> tuple[Any, Any]:
    """The fields of a map's key and value; their numbers count, and not their names.

    Raises:
        SchemaInvalid: the map has other fields.
    """
    fields = field.message_type.fields_by_number
    if sorted(fields) != [1, 2] or fields[1].message_type is not None:
        raise SchemaInvalid(f"{field.full_name} is no map of Protobuf")
    return fields[1], fields[2]


def stands_for(descriptor: Any) -> str | None:
    """The name of a message that stands for another value: a time, a duration, a wrapped one.

    A schema may define messages of these names with other fields; those are messages like any.
    """
    name: str = descriptor.full_name
    fields = {one.name: one.type for one in descriptor.fields}
    if name in (TIMESTAMP, DURATION):
        return name if fields == {"seconds": 3, "nanos": 5} else None
    is_value = fields.keys() == {"value"} and descriptor.fields[0].message_type is None
    return name if name in WRAPPERS and is_value and not is_repeated(descriptor.fields[0]) else None


class _FieldCount:
    """How many fields a body may still have."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _FIELDS_MAX

    def take(self, count: int) -> None:
        """Counts fields; raises ValueError if they are too many."""
        self.left -= count
        if self.left < 0:
            raise ValueError(f"it has more than {_FIELDS_MAX:,} fields")


def _message(descriptor: Any, made: dict[str, _Plain]) -> _Plain:
    """Makes the function that turns a message into plain values."""
    name = descriptor.full_name
    if name in made:
        return made[name]
    special = stands_for(descriptor)
    if special is not None:
        return _SPECIAL.get(special, lambda message, _: message.value)
    fields: list[tuple[str, bool, _Plain]] = []

    def plain(message: Any, left: _FieldCount) -> dict[str, Any]:
        left.take(len(fields))
        return {
            name: None
            if tells and not message.HasField(name)
            else turn(getattr(message, name), left)
            for name, tells, turn in fields
        }

    made[name] = plain  # before its fields, which may have this type
    for field in descriptor.fields:
        tells = bool(field.has_presence) and not is_repeated(field)
        fields.append((field.name, tells, _field(field, made)))
    return plain


def _field(field: Any, made: dict[str, _Plain]) -> _Plain:
    if is_map(field):
        turn = _value(map_fields(field)[1], made)
        return lambda found, left: {key: turn(found[key], left) for key in found}
    turn = _value(field, made)
    if is_repeated(field):
        return lambda found, left: [turn(each, left) for each in found]
    return turn


def _value(field: Any, made: dict[str, _Plain]) -> _Plain:
    if field.message_type is not None:
        return _message(field.message_type, made)
    if field.enum_type is not None:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda number, _: names.get(number, number)
    return lambda value, _: value


def _timestamp(message: Any, _: _FieldCount) -> datetime:
    if not 0 <= message.nanos < 1_000_000_000:
        raise ValueError(f"a timestamp of {message.nanos} nanoseconds")
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _duration(message: Any, _: _FieldCount) -> timedelta:
    seconds, nanos = message.seconds, message.nanos
    is_mixed = seconds < 0 < nanos or nanos < 0 < seconds
    if abs(seconds) > _DURATION_MAX or abs(nanos) >= 1_000_000_000 or is_mixed:
        raise ValueError(f"a duration of {seconds} seconds and {nanos} nanoseconds")
    return timedelta(seconds=message.seconds, microseconds=message.nanos / 1000)


_SPECIAL: dict[str, _Plain] = {TIMESTAMP: _timestamp, DURATION: _duration}


def _fill(message: Any, value: Any) -> None:
    """Sets the fields of a message from a dict."""
    descriptor = message.DESCRIPTOR
    name = descriptor.full_name
    if isinstance(value, Message):
        message.CopyFrom(value)
        return
    special = stands_for(descriptor)
    if special == TIMESTAMP and isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        micros = (value - _EPOCH) // timedelta(microseconds=1)
        message.seconds, message.nanos = micros // 1_000_000, micros % 1_000_000 * 1000
        return
    if special == DURATION and isinstance(value, timedelta):
        if abs(value) > timedelta(seconds=_DURATION_MAX):
            raise ValueError(f"{value} is longer than a {DURATION}")
        micros = value // timedelta(microseconds=1)
        sign = -1 if micros < 0 else 1  # both parts have it
        message.seconds = sign * (abs(micros) // 1_000_000)
        message.nanos = sign * (abs(micros) % 1_000_000 * 1000)
        return
    if special in WRAPPERS and not isinstance(value, Mapping):
        message.value = _number(descriptor.fields_by_name["value"], value)
        message.SetInParent()
        return
    if not isinstance(value, Mapping):
        raise TypeError(f"a {type(value).__name__} is no {name}")
    message.SetInParent()
    for key, each in value.items():
        field = descriptor.fields_by_name.get(key)
        if field is None:
            raise ValueError(f"{name} has no field {key!r}")
        if each is not None:
            _set(message, field, each)


def _set(message: Any, field: Any, value: Any) -> None:
    if is_map(field):
        there = getattr(message, field.name)
        inner = map_fields(field)[1]
        for key, each in value.items():
            if inner.message_type is not None:
                _fill(there[key], each)
            else:
                there[key] = _number(inner, each)
    elif is_repeated(field):
        there = getattr(message, field.name)
        for each in value:
            if field.message_type is not None:
                _fill(there.add(), each)
            else:
                there.append(_number(field, each))
    elif field.message_type is not None:
        _fill(getattr(message, field.name), value)
    else:
        setattr(message, field.name, _number(field, value))


def _number(field: Any, value: Any) -> Any:
    """The value to set: of an enum the number for a name."""
    if field.type == field.TYPE_FLOAT and _FLOAT_MAX <= abs(value) < math.inf:
        raise ValueError(f"{value} is too large for {field.full_name}")  # it would be infinity
    if field.enum_type is None or not isinstance(value, str):
        return value
    found = field.enum_type.values_by_name.get(value)
    if found is None:
        raise ValueError(f"{field.enum_type.full_name} has no {value!r}")
    return found.number
