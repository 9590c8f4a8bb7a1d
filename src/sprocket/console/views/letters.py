"""Dead letters as rows, with why they are there as far as a broker tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sprocket.console.operations.message_facts import MessageFacts
from sprocket.console.views.bodies import visible
from sprocket.console.views.messages import message_rows

#: Properties of a dead letter. Source: MessageConst of RocketMQ 5.x.
_ORIGIN, _ORIGIN_ID = "RETRY_TOPIC", "ORIGIN_MESSAGE_ID"


def letter_rows(letters: Iterable[MessageFacts], now_ms: int) -> list[dict[str, Any]]:
    """A row for each dead letter, the newest first."""
    found = list(letters)
    rows = message_rows(found, now_ms)
    for row, letter in zip(rows, found, strict=True):
        row["origin"] = visible(letter.properties.get(_ORIGIN) or letter.topic)
        row["why"] = why(letter)
    return sorted(rows, key=lambda row: -float(row["stored"]))


def why(letter: MessageFacts) -> str:
    """Why a message is a dead letter: brokers keep how often it was given back, and no error."""
    if letter.retries:
        return f"its consumers gave it back {letter.retries} times"
    return "its consumers gave it back as dead"


def matches(row: dict[str, Any], wanted: str) -> bool:
    """Whether a row contains a text that is searched."""
    text = wanted.strip().lower()
    return not text or any(
        text in str(row.get(name, "")).lower() for name in ("id", "tag", "keys", "body", "origin")
    )
