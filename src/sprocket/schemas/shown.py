"""Decoded values as JSON text, for people and for programs. Pure.

What JSON does not have is a text: bytes in base64, times by ISO 8601, decimals in digits, NaN and
the infinities by their names.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import msgspec

from sprocket.schemas.body_codec import DEPTH_MAX


def json_of(value: Any, *, indent: int = 0) -> str:
    """A decoded value as JSON.

    Args:
        indent: blanks for each level; 0 for one line.
    """
    encoded = msgspec.json.encode(plain(value), enc_hook=str)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()


def plain(value: Any, depth: int = 0) -> Any:
    """A decoded value made of what JSON has, but for times, which msgspec writes by ISO 8601."""
    if depth > DEPTH_MAX + 1:
        return "…"
    if isinstance(value, dict):
        return {_key(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
    return value


def _key(key: Any) -> str:
    return str(plain(key)) if not isinstance(key, bool) else str(key).lower()
