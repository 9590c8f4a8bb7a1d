"""Counts the messages that wait for their time, by topic: the file `config/timermetrics`. Pure.

    {"dataVersion":{...},"timingCount":{topic:{"count":3,"timeStamp":1690000000000}}}

Units of the timer log have only a topic's hash, so messages are counted by hash, beside the names.
Source: TimerMetrics of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprocket.message.hashing import tag_code


class Counts:
    """Messages that wait, by topic.

    Attributes:
        is_changed: whether a number changed since the last save.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._hashes: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._times_ms: dict[int, int] = {}
        self._version = 0
        self.is_changed = False

    def add(self, topic_hash: int, count: int, now_ms: int) -> None:
        """Adds to the number of a topic; `count` may be negative."""
        self._counts[topic_hash] = self._counts.get(topic_hash, 0) + count
        self._times_ms[topic_hash] = now_ms
        self._version += 1
        self.is_changed = True

    def enter(self, topic: str, count: int, now_ms: int) -> int:
        """Adds to the number of a topic by name; returns the topic's hash."""
        topic_hash = self.hash_of(topic)
        self.add(topic_hash, count, now_ms)
        return topic_hash

    def hash_of(self, topic: str) -> int:
        """The hash of a topic's name; keeps the name."""
        topic_hash = self._hashes.get(topic)
        return self.name(topic) if topic_hash is None else topic_hash

    def name(self, topic: str) -> int:
        """Keeps a topic's name; returns its hash."""
        topic_hash = self._hashes[topic] = tag_code(topic)
        self._names.setdefault(topic_hash, topic)
        return topic_hash

    def clear(self) -> None:
        """Removes all numbers, but no names."""
        self._counts.clear()

    @property
    def total(self) -> int:
        """The number of messages of all topics."""
        return sum(count for count in self._counts.values() if count > 0)

    def by_topic(self) -> dict[str, int]:
        """The numbers by topic, without zeros."""
        return {
            self._names[topic_hash]: max(count, 0)
            for topic_hash, count in sorted(self._counts.items())
            if count > 0 and topic_hash in self._names
        }

    def to_json(self) -> dict[str, Any]:
        """The content for the file."""
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
        """Takes names and numbers from the content of a file.

        Raises:
            ValueError, TypeError: the content has another form.
        """
        table = state.get("timingCount") or {}
        if not isinstance(table, dict):
            raise ValueError("timingCount is no object")
        for topic, entry in table.items():
            topic_hash = self.name(str(topic))
            self._counts[topic_hash] = int(entry.get("count", 0))
            self._times_ms[topic_hash] = int(entry.get("timeStamp", 0))
