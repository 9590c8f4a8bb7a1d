"""A queue: a topic's numbered part on one broker."""

from __future__ import annotations

from typing import NamedTuple


class QueueId(NamedTuple):
    """Identifies a queue in a cluster. Sorts by topic, broker, number, alike on every machine."""

    topic: str
    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker}:{self.number}"
