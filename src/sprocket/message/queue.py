"""A queue: a topic's numbered part on one broker."""

from __future__ import annotations

from typing import NamedTuple

#: Begins the broker names of logical queues. Source: MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX.
LOGICAL_PREFIX = "__syslo__"


class QueueId(NamedTuple):
    """Identifies a queue in a cluster. Sorts by topic, broker, number, alike on every machine."""

    topic: str
    broker: str
    number: int

    @property
    def is_logical(self) -> bool:
        """Whether it is a logical queue of a static topic, which may move between brokers."""
        return self.broker.startswith(LOGICAL_PREFIX)

    @property
    def place(self) -> str:
        """The name under which routes have the addresses of its broker: the broker's name.

        Each logical queue has a name of its own, since it may move alone.
        """
        if not self.is_logical:
            return self.broker
        return f"{self.broker}/{self.topic}/{self.number}"

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker}:{self.number}"
