"""How far each consumer group has come in each queue.

A committed offset is the next message to consume. What is committed is kept as it is told, also
backwards and beyond the end: the group knows best.

A reset is the committed offset at once. Until a consumer shows that it has heard of it, commits are
ignored: they were under way before. A consumer that pulls is told of the reset, and shows by a pull
from there that it has heard; so does one that asked for the group's offset since, and begins there.
An answer may reach nobody (the consumer gave its pull up, and another one is out), so it is told a
few times; one that still goes on elsewhere may have its way. Pulls that were held when the reset
came are all told, and show nothing.

File: `consumerOffset.json`, `{"offsetTable":{"topic@group":{queue:offset}}, ...}`, and in it
`resetTable`, of the same form, for resets that no consumer has heard of; Java does not read it.
Keys of other forms (`topic@group@broadcast`) are kept as they came.
Source: ConsumerOffsetManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sprocket.base.errors import SystemBusy
from sprocket.base.ports import Clock
from sprocket.protocol.bodies import DataVersion

_SEPARATOR = "@"
#: How many times a consumer is told of a reset before it may pull where it wants.
_TOLD_MAX = 3
#: Commits after which the table counts as changed. Source: consumerOffsetUpdateVersionStep.
_COMMITS_PER_VERSION = 500


@dataclass(slots=True)
class Reset:
    """Where an operator sends a group.

    Attributes:
        told: how many times consumers were told, by address.
        asked: addresses of those that asked for the group's offset.
    """

    offset: int
    told: Counter[str] = field(default_factory=Counter)
    asked: set[str] = field(default_factory=set)


class ConsumerOffsets:
    """Committed, pulled and reset offsets by group, topic and queue number.

    Attributes:
        version: rises now and then while offsets are committed, so that slaves copy them.
        is_changed: whether something changed since whoever saves it cleared this.
    """

    def __init__(self, clock: Clock, *, entries_max: int) -> None:
        self._clock = clock
        self.version = DataVersion(timestamp=clock.now_ms())
        self.is_changed = False
        self._entries_max = entries_max
        self._committed: dict[str, dict[int, int]] = {}
        self._pulled: dict[str, dict[int, int]] = {}
        self._resets: dict[str, dict[int, Reset]] = {}
        self._entries = 0
        self._commits = 0

    def committed(self, group: str, topic: str, queue_number: int) -> int | None:
        """The next offset the group wants to consume; None if it told none."""
        queues = self._committed.get(f"{topic}{_SEPARATOR}{group}")
        return None if queues is None else queues.get(queue_number)

    def commit(self, group: str, topic: str, *, queue_number: int, offset: int) -> bool:
        """Takes a group's word for how far it is.

        Returns:
            False if it was ignored, since the offset was reset and no consumer has heard of it.

        Raises:
            SystemBusy: the table is full.
        """
        key = f"{topic}{_SEPARATOR}{group}"
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None:
            return offset == reset.offset
        queues = self._committed.get(key)
        if queues is None or queue_number not in queues:
            if self._entries >= self._entries_max:
                raise SystemBusy(f"the broker holds {self._entries} consumer offsets, its limit")
            self._entries += 1
            queues = self._committed.setdefault(key, {})
        queues[queue_number] = offset
        self.is_changed = True
        self._commits += 1
        if self._commits % _COMMITS_PER_VERSION == 0:
            self.version = DataVersion(
                counter=self.version.counter + 1,
                state_version=self.version.state_version,
                timestamp=self._clock.now_ms(),
            )
        return True

    def pulled(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Remembers where the group pulls; for operators only, never saved."""
        key = f"{topic}{_SEPARATOR}{group}"
        queues = self._pulled.get(key)
        if queues is None:
            if len(self._pulled) >= self._entries_max:
                return
            queues = self._pulled[key] = {}
        queues[queue_number] = offset

    def pulled_at(self, group: str, topic: str, queue_number: int) -> int | None:
        """Where the group pulled last since the start; None if it did not."""
        return self._pulled.get(f"{topic}{_SEPARATOR}{group}", {}).get(queue_number)

    def reset(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets where the group goes on; see above for what becomes of commits."""
        self._resets.setdefault(f"{topic}{_SEPARATOR}{group}", {})[queue_number] = Reset(offset)
        self.put(group, topic, queue_number=queue_number, offset=offset)

    def pull_at(
        self, group: str, topic: str, *, queue_number: int, offset: int, address: str
    ) -> int | None:
        """Where to send a consumer that pulls from an offset; None if it may pull there.

        Args:
            address: of the consumer.
        """
        reset = self._reset_of(group, topic, queue_number)
        if reset is None:
            return None
        times = reset.told[address]
        if offset == reset.offset:
            has_heard = times > 0 or address in reset.asked
        else:
            has_heard = times >= _TOLD_MAX
        if not has_heard:
            reset.told[address] += 1
            return reset.offset
        self.is_changed = True
        key = f"{topic}{_SEPARATOR}{group}"
        del self._resets[key][queue_number]
        if not self._resets[key]:
            del self._resets[key]
        return None

    def held_at(self, group: str, topic: str, queue_number: int) -> int | None:
        """Where to send a consumer whose pull was held before a reset; None if there was none."""
        reset = self._reset_of(group, topic, queue_number)
        return None if reset is None else reset.offset

    def asked(self, group: str, topic: str, *, queue_number: int, address: str) -> None:
        """A consumer was told the committed offset."""
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None:
            reset.asked.add(address)

    def _reset_of(self, group: str, topic: str, queue_number: int) -> Reset | None:
        if not self._resets:
            return None
        return self._resets.get(f"{topic}{_SEPARATOR}{group}", {}).get(queue_number)

    def put(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets a committed offset in the name of an operator, whatever the limit."""
        queues = self._committed.setdefault(f"{topic}{_SEPARATOR}{group}", {})
        if queue_number not in queues:
            self._entries += 1
        queues[queue_number] = offset
        self.is_changed = True

    def topics_of(self, group: str) -> list[str]:
        """Topics that the group has offsets of, sorted."""
        return sorted(topic for topic, owner in self._names() if owner == group)

    def groups_of(self, topic: str) -> list[str]:
        """Groups that have offsets of the topic, sorted."""
        return sorted(owner for name, owner in self._names() if name == topic)

    def queues(self, group: str, topic: str) -> Mapping[int, int]:
        """All committed offsets of a group in a topic, by queue number."""
        return self._committed.get(f"{topic}{_SEPARATOR}{group}", {})

    def forget_topic(self, topic: str) -> None:
        """Drops all offsets of a topic."""
        self._forget([key for key in self._keys() if key.split(_SEPARATOR)[0] == topic])

    def forget_group(self, group: str) -> None:
        """Drops all offsets of a group."""
        self._forget([key for key in self._keys() if key.split(_SEPARATOR)[1:2] == [group]])

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            self._entries -= len(self._committed.pop(key, {}))
            self._pulled.pop(key, None)
            self._resets.pop(key, None)
            self.is_changed = True

    def _keys(self) -> set[str]:
        return self._committed.keys() | self._pulled.keys() | self._resets.keys()

    def _names(self) -> Iterator[tuple[str, str]]:
        """(topic, group) of all keys of the usual form."""
        for key in self._committed:
            parts = key.split(_SEPARATOR)
            if len(parts) == 2:
                yield parts[0], parts[1]

    def to_json(self) -> dict[str, Any]:
        """What the file holds of it."""
        topics: dict[str, list[str]] = {}
        for topic, group in self._names():
            topics.setdefault(group, []).append(topic)
        table: dict[str, Any] = {
            "dataVersion": msgspec.to_builtins(self.version),
            "groupTopicMap": topics,
            "offsetTable": {key: dict(queues) for key, queues in self._committed.items()},
        }
        if self._resets:
            table["resetTable"] = {
                key: {number: reset.offset for number, reset in resets.items()}
                for key, resets in self._resets.items()
            }
        return table

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what a file holds.

        Raises:
            msgspec.ValidationError: it has another form.
        """
        self._committed = msgspec.convert(
            state.get("offsetTable") or {}, dict[str, dict[int, int]], strict=False
        )
        if version := state.get("dataVersion"):
            self.version = msgspec.convert(version, DataVersion, strict=False)
        self._entries = sum(len(queues) for queues in self._committed.values())
        resets = msgspec.convert(
            state.get("resetTable") or {}, dict[str, dict[int, int]], strict=False
        )
        self._resets = {
            key: {number: Reset(offset) for number, offset in queues.items()}
            for key, queues in resets.items()
            if queues
        }

    def validate(self) -> None:
        """Asserts what must hold between two calls."""
        assert self._entries == sum(len(queues) for queues in self._committed.values())
        assert all(self._resets.values())
