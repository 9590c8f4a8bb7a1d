"""Subscriptions of a consumer: of topics by name, and of all topics that match a pattern. Pure.

A pattern must match the whole name. It finds topics that name servers list, but never RocketMQ's
own topics, nor retry and dead-letter topics. A pattern does not change the subscription of a topic
by name. A topic is unsubscribed only after it was missing in several lists in a row, because a name
server lists nothing for a while after its start.
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

#: A topic's name, or a pattern for names.
Topics = str | re.Pattern[str]

#: A topic is unsubscribed after it was missing in so many lists in a row.
_MISSING_MAX = 3
#: More topics by patterns than this are an error, because each costs a task for every queue.
_FOUND_MAX = 10_000


class _WantedTopic(NamedTuple):
    filter: Filter
    listener: Listener | None


class Subscriptions:
    """One consumer's subscriptions.

    Attributes:
        by_topic: all of them, including those by patterns.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, Subscription] = {}
        self._wishes: dict[re.Pattern[str], _WantedTopic] = {}
        #: Topics found by patterns, and in how many lists each was missing since its last listing.
        self._missing: dict[str, int] = {}
        #: The last version of every topic that was ever subscribed.
        self._versions: dict[str, int] = {}

    @property
    def has_patterns(self) -> bool:
        """Whether there are patterns, so that lists of topics are needed."""
        return bool(self._wishes)

    @property
    def is_empty(self) -> bool:
        """Whether there is no subscription, neither by name nor by a pattern."""
        return not self.by_topic and not self._wishes

    def set(
        self, topics: Topics, wanted: Filter, listener: Listener | None, *, version: int
    ) -> None:
        """Subscribes a topic, or all topics that match a pattern.

        Args:
            version: brokers keep the subscription with the highest version of a group and topic. It
                is increased if it is not above the topic's last one, because a clock can be set
                back.

        Raises:
            UsageError: it is neither a valid topic name nor a pattern for text.
        """
        if isinstance(topics, re.Pattern):
            if not isinstance(topics.pattern, str):
                raise UsageError(f"a pattern of topic names is of text, not {topics.pattern!r}")
            self._wishes[topics] = _WantedTopic(wanted, listener)
            self._renew(version)
            return
        check_topic(topics)
        self._missing.pop(topics, None)
        self.by_topic[topics] = Subscription(topics, wanted, self._newer(topics, version), listener)

    def _renew(self, version: int) -> None:
        """Subscribes what patterns found as they want it now; what none matches is given up."""
        for topic in list(self._missing):
            wish, now = self._want(topic), self.by_topic[topic]
            if wish is None:
                self._drop(topic)
            elif wish != (now.filter, now.listener):
                newer = self._newer(topic, version)
                self.by_topic[topic] = Subscription(topic, wish.filter, newer, wish.listener)

    def _newer(self, topic: str, version: int) -> int:
        newer = max(version, self._versions.get(topic, version - 1) + 1)
        self._versions[topic] = newer
        return newer

    def drop(self, topics: Topics) -> bool:
        """Unsubscribes a topic, or those of a pattern; returns whether it was subscribed."""
        if not isinstance(topics, re.Pattern):
            check_topic(topics)
            self._missing.pop(topics, None)
            return self.by_topic.pop(topics, None) is not None
        if self._wishes.pop(topics, None) is None:
            return False
        self._renew(0)
        return True

    def clear(self) -> None:
        """Removes all subscriptions."""
        self.by_topic.clear()
        self._wishes.clear()
        self._missing.clear()

    def listed(self, names: Collection[str], *, version: int) -> tuple[list[str], list[str]]:
        """Applies a list of all topics; returns the added and the removed topics, both sorted.

        Raises:
            UsageError: more than 10,000 topics match.
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
    """Whether the topic is internal, so that no pattern finds it."""
    return is_system_topic(topic) or is_retry_topic(topic) or is_dead_letter_topic(topic)
