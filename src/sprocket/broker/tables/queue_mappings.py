"""The static topics of a broker: which of its queues hold which parts of logical queues.

File: `topicQueueMapping.json`, `{"dataVersion":{...},"topicQueueMappingInfoMap":{topic:{...}}}`.
Source: TopicQueueMappingManager of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec

from sprocket.base.errors import InvalidParameter
from sprocket.base.ports import Clock
from sprocket.base.watermark import Watermark
from sprocket.clientcore.logical_queues import changed, check_parts
from sprocket.protocol.bodies import DataVersion, MappingDetail
from sprocket.store.state.snapshot import ConvertedRows

#: Logical queues of a topic at most, and parts of all of them at one broker.
QUEUES_MAX = 16_384
PARTS_MAX = 65_536
#: Characters of a scope, and of a broker's name.
NAME_MAX = 255


class QueueMappings:
    """The mappings of one broker.

    Args:
        broker: the broker's name.
        on_change: is called with the topic of a mapping that has changed.

    Attributes:
        by_topic: the mappings; for reading only. One that changes is replaced.
        moves: how often a mapping has changed.
        version: rises with each change.
    """

    def __init__(self, broker: str, clock: Clock, *, on_change: Callable[[str], None]) -> None:
        self._broker = broker
        self._clock = clock
        self._on_change = on_change
        self.by_topic: dict[str, MappingDetail] = {}
        self.moves = Watermark()
        self.version = DataVersion(timestamp=clock.now_ms())

    def get(self, topic: str) -> MappingDetail | None:
        """The mapping of a topic; None if it is not static."""
        return self.by_topic.get(topic)

    def put(self, wanted: MappingDetail, *, is_forced: bool) -> None:
        """Makes or changes a mapping for an operator.

        Raises:
            InvalidParameter: there are too many queues or parts, or a name is too long.
            SystemFailure: it contradicts itself, or what is known here.
        """
        if not 0 <= wanted.total_queues <= QUEUES_MAX:
            raise InvalidParameter(f"a static topic has at most {QUEUES_MAX} queues")
        if sum(map(len, wanted.hosted_queues.values())) > PARTS_MAX:
            raise InvalidParameter(f"logical queues have at most {PARTS_MAX} parts at a broker")
        names = {item.bname for parts in wanted.hosted_queues.values() for item in parts}
        if any(not 0 < len(name) <= NAME_MAX for name in (wanted.scope, *names)):
            raise InvalidParameter(f"a scope and a broker's name have 1 to {NAME_MAX} characters")
        old = self.by_topic.get(wanted.topic)
        self._store(changed(old, wanted, broker=self._broker, is_forced=is_forced))

    def replace(self, topic: str, hosted: Mapping[int, list[Any]]) -> None:
        """Replaces the logical queues of a topic: parts whose messages are gone are dropped."""
        old = self.by_topic[topic]
        self._store(msgspec.structs.replace(old, hosted_queues=dict(hosted)))

    def copy(self, topic: str, detail: MappingDetail | None) -> None:
        """Makes a mapping as a master has it; None if the topic is not static."""
        if self.by_topic.get(topic) == detail:
            return
        if detail is None:
            self.remove(topic)
        else:
            self._store(detail)

    def remove(self, topic: str) -> bool:
        """Removes the mapping of a topic; returns whether there was one."""
        if self.by_topic.pop(topic, None) is None:
            return False
        self._changed(topic)
        return True

    def keep(self, topics: Container[str]) -> None:
        """Removes the mappings of all other topics: their deletion was not saved here."""
        for topic in [each for each in self.by_topic if each not in topics]:
            self.remove(topic)

    def _store(self, detail: MappingDetail) -> None:
        self.by_topic[detail.topic] = detail
        self._changed(detail.topic)

    def _changed(self, topic: str) -> None:
        self.version = self.version.after_change(self._clock.now_ms())
        self.moves.rise(self.moves.value + 1)
        self._on_change(topic)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        table = ConvertedRows(dict(self.by_topic), msgspec.to_builtins)
        return {
            "dataVersion": msgspec.to_builtins(self.version),
            "topicQueueMappingInfoMap": table,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
            SystemFailure: a mapping contradicts itself.
        """
        table = msgspec.convert(
            state.get("topicQueueMappingInfoMap") or {}, dict[str, MappingDetail], strict=False
        )
        if version := state.get("dataVersion"):
            self.version = msgspec.convert(version, DataVersion, strict=False)
        for name, detail in table.items():
            for parts in detail.hosted_queues.values():
                check_parts(parts)
            detail.topic = name
        self.by_topic.update(table)
