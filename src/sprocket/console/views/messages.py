"""Messages as rows of tables, and one message with all its facts. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from sprocket.console.operations.message_facts import MessageFacts
from sprocket.console.views.bodies import first_line, visible
from sprocket.console.views.units import ago_text, count_text, moment_text, size_text

#: Where the page of one message is.
MESSAGE_PATH = "/message"


def body_of(message: MessageFacts) -> bytes:
    """The body, as far as it was read."""
    if message.body is not None:
        return message.body.encode()
    return base64.b64decode(message.body_base64 or "")


def message_rows(messages: Iterable[MessageFacts], now_ms: int) -> list[dict[str, Any]]:
    """A row for each message."""
    return [
        {
            "id": message.offset_id,
            "id_link": f"{MESSAGE_PATH}?{urlencode({'id': message.offset_id})}",
            "id_text": "open",
            "stored": message.stored_at.timestamp() if message.stored_at else 0,
            "stored_text": moment_text(message.stored_at).removesuffix(" UTC"),
            "ago": ago_text(message.stored_at, now_ms),
            "topic": message.topic,
            "place": f"{message.broker}:{message.queue}",
            "offset": message.offset,
            "offset_text": count_text(message.offset),
            "tag": first_line(message.tag, 30),
            "keys": first_line(" ".join(message.keys), 30),
            "tries": message.retries,
            "size": message.body_bytes,
            "size_text": size_text(message.body_bytes),
            "body": preview(message),
        }
        for message in messages
    ]


def preview(message: MessageFacts) -> str:
    """The beginning of a body in one line; of one that is no text, in hex."""
    if message.body is not None:
        return first_line(message.body, 90)
    return body_of(message)[:24].hex(" ")


def message_facts(message: MessageFacts, now_ms: int) -> dict[str, str]:
    """What is known of a message, by name."""
    facts = {
        "Topic": message.topic,
        "Queue": f"{message.broker}:{message.queue}, offset {count_text(message.offset)}",
        "Message id": message.message_id or "none",
        "Offset id": message.offset_id,
        "Tag": message.tag or "none",
        "Keys": ", ".join(message.keys) or "none",
        "Sent": f"{moment_text(message.born_at)} from {message.born_host}",
        "Stored": f"{moment_text(message.stored_at)}, {ago_text(message.stored_at, now_ms)}",
        "Retries": str(message.retries),
        "Size": f"{size_text(message.body_bytes)} ({count_text(message.body_bytes)} bytes)",
    }
    return {name: visible(value) for name, value in facts.items()}


def property_rows(properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each property."""
    return [
        {"id": name, "name": visible(name), "value": visible(value)}
        for name, value in sorted(properties.items())
    ]


def file_name(message: MessageFacts) -> str:
    """A name for the body as a file, without anything that a file system could take amiss."""
    place = f"{message.topic}-{message.broker}-{message.queue}-{message.offset}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", place)[:120] + ".bin"
