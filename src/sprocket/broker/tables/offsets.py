"""How far each consumer group has come in each queue.

A committed offset is the next message to consume. What is committed is kept as it is told, also
backwards and beyond the end: the group knows best.

A reset is the committed offset at once. Commits of a connection that has not shown that it heard of
it are ignored: they may have been under way before. A consumer that pulls is told where the group
is since, and shows by a pull from there that it has heard; so does one that asked for the group's
offset since, and begins there. An answer may reach nobody (the consumer gave its pull up, and
another one is out), so it is told a few times; one that still goes on elsewhere may have its way.
Pulls that were held when the reset came are all told, and show nothing.

Two members may hold one queue for a while, so that one has heard does not speak for the other. A
reset is over when one has heard of it and the longest pull has ended since: whoever lives has
pulled again by then.

Who is no consumer (a tool, a job that keeps positions elsewhere) has nothing under way, and never
pulls to show that it heard. Its connection is in no heartbeat of the group and did not pull there;
but neither did that of a consumer that has just connected again. So its commits count if it asked
where the group is since the reset, and else after the time in which a consumer would have shown
itself.

File: `consumerOffset.json`, `{"offsetTable":{"topic@group":{queue:offset}}, ...}`, and in it
`resetTable`, of the same form, for resets that are not over: a broker that starts again tells all
connections anew. Java does not read it.
Keys of other forms (`topic@group@broadcast`) are kept as they came.
Source: ConsumerOffsetManager of RocketMQ 5.x.
"""

from __future__ import annotations

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
#: How long a reset goes on once a consumer has heard of it: no pull is held longer.
RESET_MS = 300_000
#: In this time a consumer that connected again has sent a heartbeat, or pulled.
APART_MS = 60_000
#: Connections that a reset is known to; the oldest beyond that are told again.
_CONNECTIONS_MAX = 1_000
#: Commits after which the table counts as changed. Source: consumerOffsetUpdateVersionStep.
_COMMITS_PER_VERSION = 500


def _key(group: str, topic: str) -> str:
    """What the file calls a group in a topic."""
    return f"{topic}{_SEPARATOR}{group}"


@dataclass(slots=True)
class _ResetNotice:
    """What a connection knows of a reset.

    Attributes:
        offset: where it was sent, or what it was told when it asked.
        times: how many of its pulls were sent elsewhere.
        first_ms: when it committed first, as no member of the group; None if it did not.
    """

    offset: int = -1
    times: int = 0
    has_heard: bool = False
    first_ms: int | None = None


@dataclass(slots=True)
class _Reset:
    """An operator's word that was given.

    Attributes:
        heard_ms: when the first consumer showed that it heard; None while none has.
        told: by address, what connections know.
    """

    heard_ms: int | None = None
    told: dict[str, _ResetNotice] = field(default_factory=dict)

    def was_sent(self, address: str) -> bool:
        return address in self.told and self.told[address].has_heard

    def known_to(self, address: str) -> _ResetNotice:
        if address not in self.told:
            if len(self.told) >= _CONNECTIONS_MAX:
                del self.told[next(iter(self.told))]
            self.told[address] = _ResetNotice()
        return self.told[address]

    def is_apart(self, address: str, now_ms: int) -> bool:
        """Whether a connection that commits, and is of no member, is none of a consumer's."""
        told = self.known_to(address)
        if told.first_ms is None:
            told.first_ms = now_ms
        has_asked = told.offset >= 0
        return not told.times and (has_asked or abs(now_ms - told.first_ms) >= APART_MS)

    def is_over(self, now_ms: int) -> bool:
        return self.heard_ms is not None and abs(now_ms - self.heard_ms) >= RESET_MS


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
        #: Where the group pulled last, and from which address.
        self._pulled: dict[str, dict[int, tuple[int, str]]] = {}
        self._resets: dict[str, dict[int, _Reset]] = {}
        self._entries = 0
        self._commits = 0

    def committed(self, group: str, topic: str, queue_number: int) -> int | None:
        """The next offset the group wants to consume; None if it told none."""
        queues = self._committed.get(_key(group, topic))
        return None if queues is None else queues.get(queue_number)

    def commit(
        self,
        group: str,
        topic: str,
        *,
        queue_number: int,
        offset: int,
        address: str = "",
        is_member: bool = True,
    ) -> bool:
        """Takes a group's word for how far it is.

        Args:
            address: of the connection that it came by.
            is_member: whether that connection is in a heartbeat of the group, or pulls.

        Returns:
            False if it was ignored, since the offset was reset and that connection has not heard.

        Raises:
            SystemBusy: the table is full.
        """
        key = _key(group, topic)
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None and not reset.was_sent(address):
            is_member = is_member or self._puller(group, topic, queue_number) == address
            if is_member or not reset.is_apart(address, self._clock.now_ms()):
                return offset == self.committed(group, topic, queue_number)
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

    def pulled(
        self, group: str, topic: str, *, queue_number: int, offset: int, address: str
    ) -> None:
        """Remembers where the group pulls, and who; never saved."""
        key = _key(group, topic)
        queues = self._pulled.get(key)
        if queues is None:
            if len(self._pulled) >= self._entries_max:
                return
            queues = self._pulled[key] = {}
        queues[queue_number] = (offset, address)

    def pulled_at(self, group: str, topic: str, queue_number: int) -> int | None:
        """Where the group pulled last since the start; None if it did not."""
        found = self._pulled.get(_key(group, topic), {}).get(queue_number)
        return None if found is None else found[0]

    def _puller(self, group: str, topic: str, queue_number: int) -> str | None:
        found = self._pulled.get(_key(group, topic), {}).get(queue_number)
        return None if found is None else found[1]

    def reset(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets where the group goes on; see above for what becomes of commits."""
        self._resets.setdefault(_key(group, topic), {})[queue_number] = _Reset()
        self.put(group, topic, queue_number=queue_number, offset=offset)

    def pull_at(
        self, group: str, topic: str, *, queue_number: int, offset: int, address: str
    ) -> int | None:
        """Where to send a consumer that pulls from an offset; None if it may pull there.

        Args:
            address: of the consumer.
        """
        reset = self._reset_of(group, topic, queue_number)
        if reset is None or reset.was_sent(address):
            return None
        told = reset.known_to(address)
        if offset == told.offset or told.times >= _TOLD_MAX:
            told.has_heard = True
            if reset.heard_ms is None:
                reset.heard_ms = self._clock.now_ms()
            return None
        told.times += 1
        told.offset = self._committed[_key(group, topic)][queue_number]
        return told.offset

    def held_at(self, group: str, topic: str, queue_number: int, *, address: str) -> int | None:
        """Where to send a consumer whose pull was held before a reset; None if there was none."""
        reset = self._reset_of(group, topic, queue_number)
        if reset is None or reset.was_sent(address):
            return None
        return self.committed(group, topic, queue_number)

    def note_query(self, group: str, topic: str, *, queue_number: int, address: str) -> None:
        """Somebody was told the committed offset."""
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None:
            key = _key(group, topic)
            reset.known_to(address).offset = self._committed[key][queue_number]

    def _reset_of(self, group: str, topic: str, queue_number: int) -> _Reset | None:
        """The reset that is not over."""
        if not self._resets:
            return None
        key = _key(group, topic)
        reset = self._resets.get(key, {}).get(queue_number)
        if reset is None or not reset.is_over(self._clock.now_ms()):
            return reset
        del self._resets[key][queue_number]
        if not self._resets[key]:
            del self._resets[key]
        self.is_changed = True
        return None

    def put(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets a committed offset in the name of an operator, whatever the limit."""
        queues = self._committed.setdefault(_key(group, topic), {})
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
        return self._committed.get(_key(group, topic), {})

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
        now_ms = self._clock.now_ms()
        resets = {
            key: {
                n: self._committed[key][n] for n, each in known.items() if not each.is_over(now_ms)
            }
            for key, known in self._resets.items()
        }
        if any(resets.values()):
            table["resetTable"] = {key: known for key, known in resets.items() if known}
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
        resets = msgspec.convert(
            state.get("resetTable") or {}, dict[str, dict[int, int]], strict=False
        )
        self._resets = {
            key: {number: _Reset() for number in queues} for key, queues in resets.items() if queues
        }
        for key, queues in resets.items():  # a file that was made elsewhere may have only these
            for number, offset in queues.items():
                self._committed.setdefault(key, {}).setdefault(number, offset)
        self._entries = sum(len(queues) for queues in self._committed.values())

    def validate(self) -> None:
        """Asserts what must hold between two calls."""
        assert self._entries == sum(len(queues) for queues in self._committed.values())
        assert all(self._resets.values())
        assert all(self._resets[key].keys() <= self._committed[key].keys() for key in self._resets)
