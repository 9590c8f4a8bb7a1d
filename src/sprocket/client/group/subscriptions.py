"""What a consumer subscribes: topics by name, and all topics whose names match a pattern. Pure.

A pattern must match the whole name. It finds what name servers list: never RocketMQ's own topics,
nor retry and dead-letter topics. A topic that is subscribed by name stays as it was subscribed. One
that disappears is given up only after it was missing in several lists in a row: a name server that
was started anew lists nothing for a while.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Listener, Subscription
from sprocket.filter.choice import Filter
from sprocket.message.topic import (
    check_topic,
    is_dead_letter_topic,
    is_retry_topic,
    is_system_topic,
)

#: A topic's name, or a pattern that names match.
Topics = str | re.Pattern[str]

#: Lists in a row that a topic must be missing in.
_MISSING_MAX = 3
#: More topics by patterns are taken for a mistake: each costs a task for every queue.
_FOUND_MAX = 10_000


class _WantedTopic(NamedTuple):
    filter: Filter
    listener: Listener | None


class Subscriptions:
    """One consumer's subscriptions.

    Attributes:
        by_topic: all of them, those by patterns too.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, Subscription] = {}
        self._wishes: dict[re.Pattern[str], _WantedTopic] = {}
        #: Topics that patterns found, and how often each was missing since it was last listed.
        self._missing: dict[str, int] = {}
        #: Of every topic that was ever subscribed, the last one's.
        self._versions: dict[str, int] = {}

    @property
    def has_patterns(self) -> bool:
        """Whether lists of topics are of interest."""
        return bool(self._wishes)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is subscribed, neither by name nor by a pattern."""
        return not self.by_topic and not self._wishes

    def set(
        self, topics: Topics, wanted: Filter, listener: Listener | None, *, version: int
    ) -> None:
        """Subscribes a topic, or all that match.

        Args:
            version: of a group's subscriptions of a topic brokers keep the one with the highest;
                raised if it is not above the last one's here, since a clock can be set back.

        Raises:
            UsageError: that is no topic's name, and no pattern of text.
        """
        if isinstance(topics, re.Pattern):
            if not isinstance(topics.pattern, str):
                raise UsageError(f"a pattern of topic names is of text, not {topics.pattern!r}")
            self._wishes[topics] = _WantedTopic(wanted, listener)
            return
        check_topic(topics)
        self._missing.pop(topics, None)
        self.by_topic[topics] = Subscription(topics, wanted, self._newer(topics, version), listener)

    def _newer(self, topic: str, version: int) -> int:
        newer = max(version, self._versions.get(topic, version - 1) + 1)
        self._versions[topic] = newer
        return newer

    def drop(self, topics: Topics) -> bool:
        """Subscribes a topic, or what a pattern found, no more; whether it was subscribed."""
        if not isinstance(topics, re.Pattern):
            check_topic(topics)
            self._missing.pop(topics, None)
            return self.by_topic.pop(topics, None) is not None
        if self._wishes.pop(topics, None) is None:
            return False
        for topic in [each for each in self._missing if self._want(each) is None]:
            self._drop(topic)
        return True

    def clear(self) -> None:
        """Subscribes nothing."""
        self.by_topic.clear()
        self._wishes.clear()
        self._missing.clear()

    def listed(self, names: Collection[str], *, version: int) -> tuple[list[str], list[str]]:
        """What a list of all topics changes: topics that were found, and given up; both sorted.

        Raises:
            UsageError: too many match.
        """
        found, gone = [], []
        for topic in sorted(names):
            wish = None if is_internal(topic) else self._want(topic)
            if topic in self._missing:
                self._missing[topic] = 0
            elif wish is not None and topic not in self.by_topic:
                if len(self._missing) >= _FOUND_MAX:
                    raise UsageError(f"more than {_FOUND_MAX} topics match")
                newer = self._newer(topic, version)
                self.by_topic[topic] = Subscription(topic, wish.filter, newer, wish.listener)
                self._missing[topic] = 0
                found.append(topic)
        listed = set(names)
        for topic in sorted(set(self._missing) - listed):
            self._missing[topic] += 1
            if self._missing[topic] >= _MISSING_MAX:
                self._drop(topic)
                gone.append(topic)
        return found, gone

    def _drop(self, topic: str) -> None:
        del self._missing[topic]
        del self.by_topic[topic]

    def _want(self, topic: str) -> _WantedTopic | None:
        return next(
            (wish for pattern, wish in self._wishes.items() if pattern.fullmatch(topic)), None
        )


def is_internal(topic: str) -> bool:
    """Whether no pattern finds the topic."""
    return is_system_topic(topic) or is_retry_topic(topic) or is_dead_letter_topic(topic)
