"""Which broker leads which logical queues of static topics, as the brokers registered it. Pure.

What a broker registered stays when the broker is gone, as long as another one has the topic: the
logical queues of a static topic stay the same while brokers come and go, and a broker with an older
state does not take the queues of one that is away.

Source: RouteInfoManager of RocketMQ 5.3, which never removes a mapping.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.bodies import MappingInfo

logger = logging.getLogger(__name__)

_QUEUES_MAX = 65_535
_NAME_MAX = 255


class StaticTopics:
    """The mappings that one name server knows."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[str, MappingInfo]] = {}

    def register(
        self, broker: str, topics: Iterable[str], mappings: Mapping[str, MappingInfo]
    ) -> None:
        """Replaces what a broker registered of topics; those without a mapping are not static."""
        if not mappings and not self._by_topic:
            return
        for topic in topics:
            if (mapping := mappings.get(topic)) is not None:
                self._by_topic.setdefault(topic, {})[broker] = mapping
            else:
                self.forget(topic, broker)

    def add(self, broker: str, topics: Iterable[str], mappings: Mapping[str, MappingInfo]) -> None:
        """Adds what is not known yet, from a slave that stands for its master."""
        for topic in topics:
            if (mapping := mappings.get(topic)) is not None:
                self._by_topic.setdefault(topic, {}).setdefault(broker, mapping)

    def forget(self, topic: str, broker: str | None = None) -> None:
        """Removes a topic's mapping at one broker, or at all."""
        known = self._by_topic.get(topic)
        if known is None:
            return
        if broker is not None:
            known.pop(broker, None)
        if broker is None or not known:
            del self._by_topic[topic]

    def of(self, topic: str) -> dict[str, MappingInfo] | None:
        """The mappings of a topic by broker, sorted; None if it is not static."""
        known = self._by_topic.get(topic)
        return None if known is None else dict(sorted(known.items()))

    def topics(self) -> list[str]:
        """The static topics."""
        return list(self._by_topic)


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
