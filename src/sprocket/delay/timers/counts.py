"""How many messages wait for their time, by topic: the table of `config/timermetrics`. Pure.

    {"dataVersion":{...},"timingCount":{topic:{"count":3,"timeStamp":1690000000000}}}

Units of the timer log know a topic's hash only, so the table counts by hash and keeps the names.
Source: TimerMetrics of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprocket.message.hashing import tag_code


class Counts:
    """Messages that wait, by topic.

    Attributes:
        is_changed: whether it changed since it was last saved.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._hashes: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._times_ms: dict[int, int] = {}
        self._version = 0
        self.is_changed = False

    def add(self, topic_hash: int, count: int, now_ms: int) -> None:
        """Counts messages of a topic in or out."""
        self._counts[topic_hash] = self._counts.get(topic_hash, 0) + count
        self._times_ms[topic_hash] = now_ms
        self._version += 1
        self.is_changed = True

    def enter(self, topic: str, count: int, now_ms: int) -> int:
        """Counts messages of a topic in and remembers its name; returns its hash."""
        topic_hash = self.hash_of(topic)
        self.add(topic_hash, count, now_ms)
        return topic_hash

    def hash_of(self, topic: str) -> int:
        """The hash of a name, which is remembered."""
        topic_hash = self._hashes.get(topic)
        return self.name(topic) if topic_hash is None else topic_hash

    def name(self, topic: str) -> int:
        """Remembers a name; returns its hash."""
        topic_hash = self._hashes[topic] = tag_code(topic)
        self._names.setdefault(topic_hash, topic)
        return topic_hash

    def clear(self) -> None:
        """Forgets the numbers, not the names."""
        self._counts.clear()

    @property
    def total(self) -> int:
        """How many messages wait, of all topics."""
        return sum(count for count in self._counts.values() if count > 0)

    def by_topic(self) -> dict[str, int]:
        """The numbers by topic, those that are not zero."""
        return {
            self._names[topic_hash]: max(count, 0)
            for topic_hash, count in sorted(self._counts.items())
            if count > 0 and topic_hash in self._names
        }

    def to_json(self) -> dict[str, Any]:
        """What the file holds of it."""
        return {
            "dataVersion": {
                "counter": self._version,
                "stateVersion": 0,
                "timestamp": max(self._times_ms.values(), default=0),
            },
            "timingCount": {
                name: {
                    "count": self._counts.get(topic_hash, 0),
                    "timeStamp": self._times_ms.get(topic_hash, 0),
                }
                for topic_hash, name in sorted(self._names.items())
                if self._counts.get(topic_hash)
            },
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what a file holds.

        Raises:
            ValueError, TypeError: it has another form.
        """
        table = state.get("timingCount") or {}
        if not isinstance(table, dict):
            raise ValueError("timingCount is no object")
        for topic, entry in table.items():
            topic_hash = self.name(str(topic))
            self._counts[topic_hash] = int(entry.get("count", 0))
            self._times_ms[topic_hash] = int(entry.get("timeStamp", 0))
