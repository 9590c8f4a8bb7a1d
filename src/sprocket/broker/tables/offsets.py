"""The consumer offsets: the progress of each consumer group in each queue.

A committed offset is that of the next message to consume. A group may commit any offset, also a
lower one or one beyond the end of the queue: the group knows best.

A reset replaces the committed offset at once. After it, commits of a connection are ignored until
the connection has acknowledged the reset: a commit may have been sent before. A consumer that pulls
gets the new offset in the reply, and acknowledges it by a pull from there. A consumer that queried
the committed offset after the reset acknowledges it likewise. A reply may get lost (the consumer
gave up its pull and sent another one), so up to three pulls get the new offset; a consumer that
still pulls from elsewhere is allowed to. Pulls that were held during the reset are all answered
with the new offset; they acknowledge nothing.

Two members may consume one queue for a while, so each connection acknowledges for itself. A reset
is over when one connection has acknowledged it and the time of the longest held pull has passed
since: by then every live consumer has pulled again.

A connection that is no consumer (a tool, or a job that keeps its offsets elsewhere) has no earlier
commits in flight, and never pulls. It is in no heartbeat of the group and has not pulled; but the
same is true of a consumer that has just reconnected. So its commits count if it has queried the
committed offset since the reset, and otherwise after the time in which a consumer would have sent
a heartbeat or a pull.

File: `consumerOffset.json`, `{"offsetTable":{"topic@group":{queue:offset}}, ...}`, and in it
`resetTable`, of the same form, for resets that are not over: a broker that restarts sends them to
all connections again; and `popTable`, see `pop_table`. Java does not read these.
Keys of other forms (`topic@group@broadcast`) are kept unchanged.
Source: ConsumerOffsetManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import SystemBusy
from sprocket.base.ports import Clock
from sprocket.broker.tables.offset_keys import SEPARATOR, OffsetKeys
from sprocket.broker.tables.offset_resets import Reset
from sprocket.broker.tables.pop_table import PopTable
from sprocket.protocol.bodies import DataVersion

#: How many pulls of a consumer get the new offset before it may pull from where it wants.
_REDIRECTS_MAX = 3
#: Commits after which the table counts as changed. Source: consumerOffsetUpdateVersionStep.
_COMMITS_PER_VERSION = 500


def _key(group: str, topic: str) -> str:
    """The key of a group and a topic in the file."""
    return f"{topic}{SEPARATOR}{group}"


class ConsumerOffsets:
    """Committed, pulled and reset offsets by group, topic and queue number.

    Args:
        clock: gives the version its time.
        entries_max: gives the most committed offsets.
        steady_ms: a clock that never jumps, by which resets end: one that jumped could end a reset
            before all consumers know of it.
        on_change: called with the key of a row and the queue that has changed; -1 if all of it is
            gone.

    Attributes:
        version: rises once in 500 commits, so that slaves copy the offsets.
        is_changed: whether the table has changed since the saver cleared this flag.
        popped: what pop consumers need besides their offsets.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        entries_max: Callable[[], int],
        steady_ms: Callable[[], int] = loop_ms,
        on_change: Callable[[str, int], None] = lambda key, queue_number: None,
    ) -> None:
        self._clock = clock
        self._on_change = on_change
        self._steady_ms = steady_ms
        self.version = DataVersion(timestamp=clock.now_ms())
        self.is_changed = False
        self.popped = PopTable()
        self._entries_max = entries_max
        self._committed: dict[str, dict[int, int]] = {}
        #: The last picture of them: a commit replaces a row that is in it by a copy.
        self._picture: dict[str, dict[int, int]] = {}
        self._keys = OffsetKeys()
        #: The offset of the group's last pull, and the address of the consumer.
        self._pulled: dict[str, dict[int, tuple[int, str]]] = {}
        self._resets: dict[str, dict[int, Reset]] = {}
        self._entries = 0
        self._commits = 0

    def committed(self, group: str, topic: str, queue_number: int) -> int | None:
        """The committed offset; None if the group has committed none."""
        queues = self._committed.get(_key(group, topic))
        return None if queues is None else queues.get(queue_number)

    # While a reset is in force, a commit is accepted only from a connection that has acknowledged
    # it. Consumers commit every few seconds: one commit sent before the reset would undo it. A
    # commit of the reset's own offset changes nothing, so it counts as taken.
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
        """Commits a group's offset.

        Args:
            address: of the connection that commits.
            is_member: whether that connection is in a heartbeat of the group, or pulls.

        Returns:
            False if the commit was ignored, since the offset was reset and the connection has not
            acknowledged the reset.

        Raises:
            SystemBusy: the table is full.
        """
        key = _key(group, topic)
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None and not reset.was_sent(address):
            is_member = is_member or self._puller(group, topic, queue_number) == address
            if is_member or not reset.is_apart(address, self._steady_ms()):
                return offset == self.committed(group, topic, queue_number)
        queues = self._committed.get(key)
        if queues is None or queue_number not in queues:
            if self._entries >= self._entries_max():
                raise SystemBusy(f"the broker holds {self._entries} consumer offsets, its limit")
            self._entries += 1
        self._set(key, queue_number, offset)
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
        """Remembers the offset and the address of a group's last pull; this is never saved."""
        key = _key(group, topic)
        queues = self._pulled.get(key)
        if queues is None:
            if len(self._pulled) >= self._entries_max():
                return
            queues = self._pulled[key] = {}
            self._keys.add(key, is_committed=False)
        queues[queue_number] = (offset, address)

    def pulled_at(self, group: str, topic: str, queue_number: int) -> int | None:
        """The offset of the group's last pull since the start; None if it has not pulled."""
        found = self._pulled.get(_key(group, topic), {}).get(queue_number)
        return None if found is None else found[0]

    def _puller(self, group: str, topic: str, queue_number: int) -> str | None:
        found = self._pulled.get(_key(group, topic), {}).get(queue_number)
        return None if found is None else found[1]

    def reset(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Resets the committed offset for an operator; the module's text describes the effects."""
        self._resets.setdefault(_key(group, topic), {})[queue_number] = Reset()
        self.popped.reset(group, topic, queue_number, self._clock.now_ms())
        self.put(group, topic, queue_number=queue_number, offset=offset)

    def pull_at(
        self, group: str, topic: str, *, queue_number: int, offset: int, address: str
    ) -> int | None:
        """The offset that a consumer must pull from after a reset; None if its own is right.

        Args:
            offset: the offset that it asks for.
            address: of the consumer.
        """
        reset = self._reset_of(group, topic, queue_number)
        if reset is None or reset.was_sent(address):
            return None
        notice = reset.notice_of(address)
        if offset == notice.offset or notice.times >= _REDIRECTS_MAX:
            notice.has_heard = True
            if reset.acknowledged_ms is None:
                reset.acknowledged_ms = self._steady_ms()
            return None
        notice.times += 1
        notice.offset = self._committed[_key(group, topic)][queue_number]
        return notice.offset

    def held_at(self, group: str, topic: str, queue_number: int, *, address: str) -> int | None:
        """The new offset for a pull that was held during a reset; None if there was no reset."""
        reset = self._reset_of(group, topic, queue_number)
        if reset is None or reset.was_sent(address):
            return None
        return self.committed(group, topic, queue_number)

    def note_query(self, group: str, topic: str, *, queue_number: int, address: str) -> None:
        """Remembers that a connection received the committed offset by a query."""
        reset = self._reset_of(group, topic, queue_number)
        if reset is not None:
            reset.notice_of(address).offset = self._committed[_key(group, topic)][queue_number]

    def _reset_of(self, group: str, topic: str, queue_number: int) -> Reset | None:
        """The reset in force; None if there is none or it is over."""
        if not self._resets:
            return None
        key = _key(group, topic)
        reset = self._resets.get(key, {}).get(queue_number)
        if reset is None or not reset.is_over(self._steady_ms()):
            return reset
        del self._resets[key][queue_number]
        if not self._resets[key]:
            del self._resets[key]
        self.is_changed = True
        self._on_change(key, queue_number)
        return None

    def pop_from(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Commits for a group that pops here, which a reset has reached by that; as `commit`."""
        resets = self._resets.get(key := _key(group, topic))
        if resets and resets.pop(queue_number, None) and not resets:
            del self._resets[key]
        self.commit(group, topic, queue_number=queue_number, offset=offset)

    def count_popped(self, group: str, topic: str, queue_number: int, count: int) -> None:
        """Counts messages that a group popped, or below 0 that it has done."""
        self.popped.add(group, topic, queue_number, count)
        self.is_changed = True
        self._on_change(_key(group, topic), queue_number)

    def put(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets a committed offset for an operator, even if the table is full."""
        key = _key(group, topic)
        if queue_number not in self._committed.get(key, ()):
            self._entries += 1
        self._set(key, queue_number, offset)

    def _set(self, key: str, queue_number: int, offset: int) -> None:
        queues = self._committed.get(key)
        if queues is None:
            queues = self._committed[key] = {}
            self._keys.add(key, is_committed=True)
        elif self._picture.get(key) is queues:
            queues = self._committed[key] = dict(queues)
        queues[queue_number] = offset
        self.is_changed = True
        self._on_change(key, queue_number)

    def topics_of(self, group: str) -> list[str]:
        """Topics in which the group has offsets, sorted."""
        return sorted(self._keys.topics.get(group, ()))

    def groups_of(self, topic: str) -> list[str]:
        """Groups that have offsets in the topic, sorted."""
        return sorted(self._keys.groups.get(topic, ()))

    def queues(self, group: str, topic: str) -> Mapping[int, int]:
        """All committed offsets of a group in a topic, by queue number."""
        return self._committed.get(_key(group, topic), {})

    def forget_topic(self, topic: str) -> None:
        """Removes all offsets of a topic."""
        self._forget(self._keys.of_topic(topic))

    def forget_group(self, group: str) -> None:
        """Removes all offsets of a group."""
        self._forget(self._keys.of_group(group))

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            queues = self._committed.pop(key, {})
            self._entries -= len(queues)
            self._keys.remove(key)
            self._pulled.pop(key, None)
            self._resets.pop(key, None)
            self.popped.forget(key, queues, self._clock.now_ms())
            self.is_changed = True
            self._on_change(key, -1)

    # For slaves, which copy whole rows or single queues.

    def names(self) -> list[str]:
        """The keys of all rows with committed offsets: `topic@group` in most."""
        return list(self._committed)

    def row(self, key: str) -> Mapping[int, int]:
        """All offsets of a row, by queue number; none if there is no such row."""
        return self._committed.get(key, {})

    def resets_of(self, key: str) -> Iterable[int]:
        """The queues of a row whose reset is not over, as far as was noticed."""
        return self._resets.get(key, ())

    def copy_row(self, key: str, offsets: Mapping[int, int]) -> None:
        """Makes a row as a master has it; without offsets it is gone."""
        if not offsets:
            self._forget([key])
            return
        before = self._committed.get(key, {})
        self.copy_offsets(key, offsets)
        if gone := before.keys() - offsets.keys():
            self._entries -= len(gone)
            self._committed[key] = dict(offsets)
            self._resets[key] = {
                n: each for n, each in self._resets.get(key, {}).items() if n in offsets
            }
            if not self._resets[key]:
                del self._resets[key]

    def copy_offsets(
        self, key: str, offsets: Mapping[int, int], resets: Collection[int] = ()
    ) -> None:
        """Sets offsets of a row as a master has them, even if the table is full.

        Args:
            resets: those of these queues whose reset is not over.
        """
        row, known = self._committed.get(key, {}), self._resets.get(key, {})
        for number, offset in offsets.items():
            is_known = number in row
            if not is_known or row[number] != offset:
                self._entries += not is_known
                self._set(key, number, offset)
            if number in resets:
                known.setdefault(number, Reset())
            else:
                known.pop(number, None)
        if known:
            self._resets[key] = known
        else:
            self._resets.pop(key, None)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        # It takes a picture, since encoding it takes many turns of the event loop: only the rows
        # that change meanwhile are copied.
        self._picture = dict(self._committed)
        table: dict[str, Any] = {
            "dataVersion": msgspec.to_builtins(self.version),
            "groupTopicMap": {group: list(topics) for group, topics in self._keys.topics.items()},
            "offsetTable": self._picture,
        }
        if self.popped.is_used:
            table["popTable"] = self.popped.to_json()
        now_ms = self._steady_ms() if self._resets else 0
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
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        self._committed = msgspec.convert(
            state.get("offsetTable") or {}, dict[str, dict[int, int]], strict=False
        )
        self.popped.load(state.get("popTable"))
        if version := state.get("dataVersion"):
            self.version = msgspec.convert(version, DataVersion, strict=False)
        resets = msgspec.convert(
            state.get("resetTable") or {}, dict[str, dict[int, int]], strict=False
        )
        self._resets = {
            key: {number: Reset() for number in queues} for key, queues in resets.items() if queues
        }
        for key, queues in resets.items():  # a file from elsewhere may lack these in offsetTable
            for number, offset in queues.items():
                self._committed.setdefault(key, {}).setdefault(number, offset)
        self._entries = sum(len(queues) for queues in self._committed.values())
        self._picture, self._keys = {}, OffsetKeys()
        for key in self._committed:
            self._keys.add(key, is_committed=True)
        for key in self._pulled:
            self._keys.add(key, is_committed=False)

    def validate(self) -> None:
        """Asserts the invariants that hold between two calls."""
        assert self._entries == sum(len(queues) for queues in self._committed.values())
        assert all(self._resets.values())
        self._keys.validate(self._committed, self._pulled)
        assert all(self._resets[key].keys() <= self._committed[key].keys() for key in self._resets)
