"""When a task is due, and how much of that wait one message can bear. Pure.

Brokers hold a message for some days at most. A task that is due later travels in hops: its message
names the time, and whoever receives it before that time sends it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: The property that names the time when a task is due, ms since 1970, while it travels in hops.
DUE = "SPROCKET_DUE"
#: The property that names its priority meanwhile: a message that waits cannot have one.
PRIORITY = "SPROCKET_PRIORITY"
#: A task that is due within this time is not sent on, ms: clocks differ by as much.
_SOON_MS = 1_000


class Wait(NamedTuple):
    """How a message waits.

    Attributes:
        deliver_at: when the broker delivers it, ms since 1970; None for at once.
        due: when the task is due, if that is later; else None.
    """

    deliver_at: int | None
    due: int | None


def wait_of(due_ms: int | None, now_ms: int, delay_max_ms: int) -> Wait:
    """How a message waits for a time."""
    if due_ms is None or due_ms <= now_ms:
        return Wait(None, None)
    if due_ms - now_ms <= delay_max_ms:
        return Wait(due_ms, None)
    return Wait(now_ms + delay_max_ms, due_ms)


def hop_of(properties: Mapping[str, str], now_ms: int) -> int | None:
    """The time for which a message that was received is still too early; None if it is not."""
    due = _number(properties.get(DUE, ""))
    return due if due is not None and due - now_ms > _SOON_MS else None


def priority_of(properties: Mapping[str, str]) -> int:
    """The priority of a task that travels in hops."""
    return _number(properties.get(PRIORITY, "")) or 0


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
