"""CloudEvents in messages: attributes as properties, or the whole event as JSON. Pure.

In binary mode each attribute is a property with a prefix and the body is the data; in structured
mode the body is the event as JSON, and the content type begins with `application/cloudevents`.
Facts: the RocketMQ binding in the specification of CloudEvents, and its Java SDK
(`RocketmqConstants`), which writes `CE_`, and a body of one zero byte for no data.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from sprocket.schemas.body_codec import CONTENT_TYPE
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.json_bodies import JsonBodies

PREFIX = "CE_"
STRUCTURED = "application/cloudevents"
_JSON = "application/cloudevents+json"
_NO_DATA = b"\0"
#: The attributes that the specification names, but the time.
ATTRIBUTES = ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject")
_DATA = ("data", "data_base64")
_REQUIRED = ("id", "source", "specversion", "type")


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """An event.

    Attributes:
        attributes: by name: all but the time and extensions, None where there is none. What
            `dataschema` names is never fetched.
        time: when it happened; None if it is not said, or not by RFC 3339.
        extensions: attributes that the specification does not name, as texts.
        data: its data as bytes; None for none.
    """

    attributes: Mapping[str, str | None]
    time: datetime | None
    extensions: Mapping[str, str]
    data: bytes | None


def event_of(properties: Mapping[str, str], body: bytes, prefix: str = PREFIX) -> CloudEvent | None:
    """The event in a message; None if the message is none.

    Args:
        prefix: of the properties with attributes.

    Raises:
        BodyMismatch: it says that it is an event, and is none.
    """
    found = {
        name[len(prefix) :].lower(): value
        for name, value in properties.items()
        if name.startswith(prefix) and len(name) > len(prefix)
    }
    content_type = found.pop("contenttype", None)
    media = (content_type or properties.get(CONTENT_TYPE) or "").strip().lower()
    if media.startswith(STRUCTURED):
        if not media.startswith(_JSON):
            raise BodyMismatch(f"an event as {media[:100]}: only JSON is known")
        return _structured(body)
    if "specversion" not in found:
        return None
    if content_type is not None:
        found.setdefault("datacontenttype", content_type)
    return _event(found, None if body in (b"", _NO_DATA) else body)


def _structured(body: bytes) -> CloudEvent:
    value = JsonBodies().decode(body)
    if not isinstance(value, dict):
        raise BodyMismatch("the event is no JSON object")
    data: bytes | None = None
    if value.get("data_base64") is not None:
        try:
            data = base64.b64decode(value["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise BodyMismatch("data_base64 of the event is no base64") from None
    elif "data" in value:
        inner = value["data"]
        is_json = "json" in str(value.get("datacontenttype") or "json")
        is_text = isinstance(inner, str) and not is_json
        data = inner.encode() if is_text else msgspec.json.encode(inner)
    texts = {
        name: _text(each) for name, each in value.items() if name not in _DATA and each is not None
    }
    return _event(texts, data)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _event(found: Mapping[str, str], data: bytes | None) -> CloudEvent:
    missing = [name for name in _REQUIRED if not found.get(name)]
    if missing:
        raise BodyMismatch(f"an event without {' and '.join(missing)}")
    known = {name: found.get(name) for name in ATTRIBUTES}
    others = {name: value for name, value in found.items() if name not in known and name != "time"}
    return CloudEvent(known, _time(found.get("time")), others, data)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = msgspec.convert(text, datetime)
        return None if found.tzinfo is None else found.astimezone(UTC)
    except (msgspec.ValidationError, OverflowError, ValueError):
        return None
