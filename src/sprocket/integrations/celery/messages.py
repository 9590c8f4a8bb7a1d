"""Messages of kombu as bodies of ours, and back; and when a task is due. Pure."""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime
from typing import Any

from kombu.utils.json import dumps, loads

#: What JSON, and kombu's decoders of times, numbers and bytes in it, raise.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
#: Of a number of milliseconds.
_DIGITS_MAX = 15


def body_of(message: dict[str, Any]) -> bytes:
    """The body of a message of kombu's virtual transports."""
    text: str = dumps(message)
    return text.encode()


def message_of(body: bytes, tag: str, deliveries: int) -> dict[str, Any]:
    """Reads a body as a delivery of its own.

    Args:
        tag: the delivery's tag; the sender's would be the same for each delivery.
        deliveries: how often the message was delivered before.

    Raises:
        ValueError: it is no message of kombu's.
    """
    try:
        read: Any = loads(body.decode())
    except _UNREADABLE as error:
        raise ValueError(f"it is no message of kombu's: {error}") from error
    found: dict[str, Any] = read if isinstance(read, dict) else {}
    properties = found.get("properties")
    if not isinstance(properties, dict) or not _is_readable(found, properties):
        raise ValueError("it is no message of kombu's")
    info = properties.get("delivery_info")
    properties["delivery_info"] = info = dict(info) if isinstance(info, dict) else {}
    properties["delivery_tag"] = tag
    info["redelivered"] = deliveries > 0
    info["delivery_count"] = deliveries
    if not isinstance(found.get("headers"), dict):
        found["headers"] = {}
    return found


def _is_readable(message: dict[str, Any], properties: dict[str, Any]) -> bool:
    """Whether kombu can read a message; what it cannot read would end the worker."""
    body, encoding = message.get("body"), properties.get("body_encoding")
    texts = (message.get("content-type"), message.get("content-encoding"), encoding)
    if not isinstance(body, str | bytes) or not all(
        each is None or isinstance(each, str) for each in texts
    ):
        return False
    if encoding is None or encoding.lower() == "utf-8":
        return True
    if encoding != "base64":
        return False
    try:
        b64decode(body)
    except ValueError:
        return False
    return True


def expiry_of(message: dict[str, Any], born_ms: int) -> int | None:
    """When a message expires, ms since 1970: its `expiration` after it was sent, or is due."""
    lives_ms = message["properties"].get("expiration")
    if not isinstance(lives_ms, str) or not lives_ms.isdecimal() or len(lives_ms) > _DIGITS_MAX:
        return None
    return max(born_ms, due_of(message) or 0) + int(lives_ms)


def due_of(message: dict[str, Any]) -> int | None:
    """When a task with a countdown or an eta is due, ms since 1970; None if it is not late.

    A time without a zone is that of the worker's, so the worker waits for it.
    """
    headers = message.get("headers")
    eta = headers.get("eta") if isinstance(headers, dict) else None
    if not isinstance(eta, str):
        return None
    try:
        at = datetime.fromisoformat(eta)
    except ValueError:
        return None
    return None if at.tzinfo is None else int(at.timestamp() * 1000)


def priority_of(message: dict[str, Any]) -> int:
    """The priority of a message; 0 if it has none."""
    priority = message["properties"].get("priority")
    return priority if isinstance(priority, int) else 0
