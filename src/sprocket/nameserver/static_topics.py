"""Which broker leads which logical queues of static topics, as the brokers registered it. Pure.

What a broker registered stays when the broker is gone, as long as another one has the topic: the
logical queues of a static topic stay the same while brokers come and go, and a broker with an older
state does not take the queues of one that is away. Who registers ever new names and leaves would
fill the memory so: there are only so many entries, and before one is refused, those of brokers that
are gone are forgotten.

Source: RouteInfoManager of RocketMQ 5.3, which never removes a mapping.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any

from sprocket.base.errors import RemoteProtocolError, SystemFailure
from sprocket.protocol.bodies import MappingInfo

logger = logging.getLogger(__name__)

_QUEUES_MAX = 65_535
_NAME_MAX = 255


class StaticTopics:
    """The mappings that one name server knows.

    Args:
        entries_max: mappings, and the queues in them, at most.
    """

    def __init__(self, entries_max: int = 1_000_000) -> None:
        self._by_topic: dict[str, dict[str, MappingInfo]] = {}
        self._entries_max = entries_max
        #: By broker, how many entries its mappings have.
        self._entries: Counter[str] = Counter()

    def check(self, broker: str, mappings: Mapping[str, MappingInfo], here: Set[str]) -> None:
        """Makes room for a broker's mappings.

        Args:
            here: the brokers that are registered.

        Raises:
            SystemFailure: there are too many without those of brokers that are gone.
        """
        wanted = sum(map(_entries, mappings.values()))
        if not wanted or self._entries.total() + wanted <= self._entries_max:
            return
        before = sum(
            _entries(self._by_topic[topic][broker])
            for topic in mappings
            if broker in self._by_topic.get(topic, ())
        )
        if self._entries.total() + wanted - before <= self._entries_max:
            return
        kept = sum(count for name, count in self._entries.items() if name in here)
        if kept + wanted - (before if broker in here else 0) > self._entries_max:
            raise SystemFailure(
                f"no more than {self._entries_max} queues of static topics are taken"
            )
        for topic, known in list(self._by_topic.items()):
            for name in known.keys() - here:
                self.forget(topic, name)
        logger.warning("static topics forget the brokers that are gone: there is no more room")

    def register(
        self, broker: str, topics: Iterable[str], mappings: Mapping[str, MappingInfo]
    ) -> None:
        """Replaces what a broker registered of topics; those without a mapping are not static."""
        if not mappings and not self._by_topic:
            return
        for topic in topics:
            if (mapping := mappings.get(topic)) is not None:
                self._put(topic, broker, mapping)
            else:
                self.forget(topic, broker)

    def add(self, broker: str, topics: Iterable[str], mappings: Mapping[str, MappingInfo]) -> None:
        """Adds what is not known yet, from a slave that stands for its master."""
        for topic in topics:
            mapping = mappings.get(topic)
            if mapping is not None and broker not in self._by_topic.get(topic, ()):
                self._put(topic, broker, mapping)

    def _put(self, topic: str, broker: str, mapping: MappingInfo) -> None:
        known = self._by_topic.setdefault(topic, {})
        if (before := known.get(broker)) is not None:
            self._entries[broker] -= _entries(before)
        known[broker] = mapping
        self._entries[broker] += _entries(mapping)

    def forget(self, topic: str, broker: str | None = None) -> None:
        """Removes a topic's mapping at one broker, or at all."""
        known = self._by_topic.get(topic)
        if known is None:
            return
        for name in list(known) if broker is None else [broker]:
            if (mapping := known.pop(name, None)) is not None:
                self._entries[name] -= _entries(mapping)
                if not self._entries[name]:
                    del self._entries[name]
        if not known:
            del self._by_topic[topic]

    def of(self, topic: str) -> dict[str, MappingInfo] | None:
        """The mappings of a topic by broker, sorted; None if it is not static."""
        known = self._by_topic.get(topic)
        return None if known is None else dict(sorted(known.items()))

    def topics(self) -> list[str]:
        """The static topics."""
        return list(self._by_topic)

    def validate(self) -> None:
        """Asserts the invariants."""
        counted: Counter[str] = Counter()
        for known in self._by_topic.values():
            assert known
            for name, mapping in known.items():
                counted[name] += _entries(mapping)
        assert counted == self._entries
        assert self._entries.total() <= self._entries_max


def _entries(mapping: MappingInfo) -> int:
    return 1 + len(mapping.curr_id_map)


def mappings_in(received: Mapping[str, Any] | None, broker: str) -> dict[str, MappingInfo]:
    """The mappings in a registration, without those that no client could use."""
    taken: dict[str, MappingInfo] = {}
    for topic, value in (received or {}).items():
        try:
            info = MappingInfo.of_value(value)
        except RemoteProtocolError as error:
            logger.warning("the mapping of topic %.*r is left out: %s", 80, topic, error)
            continue
        numbers = range(min(info.total_queues, _QUEUES_MAX))
        is_wrong = any(each not in numbers for each in info.curr_id_map)
        if is_wrong or info.total_queues > _QUEUES_MAX or not 0 < len(info.scope) <= _NAME_MAX:
            logger.warning("the mapping of topic %.*r is left out: its numbers", 80, topic)
            continue
        info.topic, info.bname = topic, broker
        taken[topic] = info
    return taken
