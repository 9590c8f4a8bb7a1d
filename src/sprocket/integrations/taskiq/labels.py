"""The labels of taskiq's tasks that this broker reads. Pure.

`delay`, `queue_name` and `priority` have the meaning that they have for taskiq's brokers of
RabbitMQ and Redis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sprocket.base.errors import UsageError
from sprocket.integrations.queues.options import priority_given

#: The label with the seconds after which a task may begin.
DELAY = "delay"
#: The label with the queue that a task goes to.
QUEUE_NAME = "queue_name"
#: The label with the priority of a task; a higher one is more urgent.
PRIORITY = "priority"
#: The longest delay, s: thirty years. Times beyond have more digits than brokers take.
_DELAY_MAX = 30 * 365 * 24 * 3600


def due_of(labels: Mapping[str, Any], now_ms: int) -> int | None:
    """When a task with these labels is due, ms since 1970; None for at once.

    Raises:
        UsageError: the delay is no number of seconds.
    """
    given = labels.get(DELAY)
    if given is None:
        return None
    try:
        seconds = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not seconds <= _DELAY_MAX:  # neither is what is no number
        raise UsageError(
            f"the label {DELAY} is a number of seconds of at most {_DELAY_MAX}, not {given!r}"
        )
    return now_ms + math.ceil(seconds * 1000) if seconds > 0 else None


def queue_of(labels: Mapping[str, Any], default: str) -> str:
    """The queue that a task with these labels goes to.

    Raises:
        UsageError: the name of the queue is no text, or empty.
    """
    given = labels.get(QUEUE_NAME)
    if given is None:
        return default
    if not isinstance(given, str) or not given:
        raise UsageError(f"the label {QUEUE_NAME} is the name of a queue, not {given!r}")
    return given


def priority_of(labels: Mapping[str, Any]) -> int:
    """The priority of a task with these labels; 0 if it has none.

    Raises:
        UsageError: it is no whole number.
    """
    return priority_given(f"the label {PRIORITY}", labels.get(PRIORITY))
