"""Pops in order: of each queue, what a group has popped and not acknowledged yet. Pure.

While a message of a queue is given out and invisible, the group gets no other one of this queue. A
consumer that asks again with the same attempt id, since the reply did not reach it, gets the same
messages. The group's offset moves when the first messages are acknowledged; those that are
acknowledged behind one that is not are never given out again.

A row is never changed but replaced. Each new one is in a record of the log before the reply to the
pop, the acknowledgement or the change of the invisible time (`broker/pop/journal.py`), so the file
may be some seconds old: a start applies the records from the file's `marks` on.

File: `consumerOrderInfo.json`, `{"table":{"topic@group":{queue:{...}}}}`, as Java writes it, with
`marks` beside the table, which Java does not read.
Source: ConsumerOrderInfoManager of RocketMQ 5.3, which gives out again what was acknowledged behind
one that was not, and saves every ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

#: By topic and queue, the offset of the first record that a table has not applied.
Marks = dict[str, dict[int, int]]

#: Offsets of one queue that are remembered at most: Java has a bit for each in a signed number.
OFFSETS_MAX = 63
#: What nobody popped or acknowledged for so long is dropped, ms. Source: CLEAN_SPAN_FROM_LAST.
_KEPT_MS = 24 * 3_600_000


class OrderedPop(msgspec.Struct, omit_defaults=True):
    """What was popped last from a queue.

    Attributes:
        pop_ms, invisible_ms: when, and for how long it is hidden.
        distances: the first queue offset, then the distance of each further one from it.
        visible_ms: by queue offset, when it is visible again, where that was changed.
        counts: by queue offset, how often it was given out before, where it was.
        last_ms: when it was popped last.
        done_later: offsets beside these that are acknowledged; Java does not read them.
        done_bits: a bit for each offset that is acknowledged, lowest first.
        attempt: the attempt id; None if the consumer sent none.
    """

    attempt: str | None = msgspec.field(default=None, name="a")
    done_bits: int = msgspec.field(default=0, name="cm")
    invisible_ms: int | None = msgspec.field(default=None, name="i")
    last_ms: int = msgspec.field(default=0, name="l")
    distances: list[int] = msgspec.field(default_factory=list, name="o")
    done_later: list[int] | None = msgspec.field(default=None, name="doneLater")
    counts: dict[int, int] | None = msgspec.field(default=None, name="oc")
    visible_ms: dict[int, int] | None = msgspec.field(default=None, name="ot")
    pop_ms: int = msgspec.field(default=0, name="popTime")

    def offsets(self) -> list[int]:
        """All queue offsets."""
        first = self.distances[:1]
        return first + [first[0] + distance for distance in self.distances[1:]]

    # Each acknowledgement asks for these two: they look at no more offsets than they must.
    def place_of(self, offset: int) -> int | None:
        """The place of a queue offset in the list; None if it is not there."""
        distances = self.distances
        distance = offset - distances[0]
        if distance == 0:
            return 0
        if 0 < distance < len(distances) and distances[distance] == distance:  # without gaps
            return distance
        return distances.index(distance, 1) if distance in distances[1:] else None

    def is_done(self, place: int) -> bool:
        """Whether the message at a place of the list is acknowledged."""
        return bool(self.done_bits >> place & 1)

    def blocked_until(self, now_ms: int, invisible_ms: int) -> int | None:
        """When the next of its messages becomes visible; None if none is hidden.

        Args:
            invisible_ms: counts where the pop has no such time.
        """
        due_ms = self.pop_ms + (self.invisible_ms or invisible_ms)
        times = [
            (self.visible_ms or {}).get(offset, due_ms)
            for place, offset in enumerate(self.offsets())
            if not self.is_done(place)
        ]
        return max((each for each in times if each > now_ms), default=None)

    def next_offset(self) -> int:
        """The first offset that is not acknowledged, or the one behind all."""
        distances, done = self.distances, self.done_bits
        first_open = (~done & (done + 1)).bit_length() - 1
        if first_open < len(distances):
            return distances[0] + (distances[first_open] if first_open else 0)
        following = distances[0] + (distances[-1] if len(distances) > 1 else 0) + 1
        while self.done_later and following in self.done_later:
            following += 1
        return following


def row_of(state: Any) -> OrderedPop:
    """A row from its JSON.

    Raises:
        msgspec.ValidationError: the JSON has another form.
    """
    return msgspec.convert(state, OrderedPop, strict=False)


class OrderTable:
    """The pops in order.

    Args:
        on_change: is called with the `topic@group` and the number of a queue after each change.
        marks: up to which records about popped messages all tables are right now; None if that is
            unknown.

    Attributes:
        marks: the same for what was loaded, or copied from a master: a start applies the records
            from there on, or none if this is None.
        is_changed: whether the table has changed since the saver cleared this flag.
    """

    def __init__(
        self, on_change: Callable[[str, int], None], marks: Callable[[], Marks | None]
    ) -> None:
        self._on_change = on_change
        self._marks = marks
        self._rows: dict[str, dict[int, OrderedPop]] = {}
        self.marks: Marks | None = None
        self.is_changed = False

    def find(self, group: str, topic: str, queue_number: int) -> OrderedPop | None:
        """What was popped last from a queue; None if that is unknown."""
        return self._rows.get(f"{topic}@{group}", {}).get(queue_number)

    def blocked_until(
        self, group: str, topic: str, queue_number: int, *, attempt: str | None, now_ms: int,
        invisible_ms: int = 0,
    ) -> int | None:  # fmt: skip
        """Until when a queue gives out nothing, ms; None if it may."""
        found = self.find(group, topic, queue_number)
        if found is None or (attempt is not None and found.attempt == attempt):
            return None
        return found.blocked_until(now_ms, invisible_ms)

    def done_offsets(self, group: str, topic: str, queue_number: int) -> frozenset[int]:
        """Offsets that are acknowledged behind one that is not."""
        found = self.find(group, topic, queue_number)
        if found is None:
            return frozenset()
        places = enumerate(found.offsets())
        done = (offset for place, offset in places if found.is_done(place))
        return frozenset((*done, *(found.done_later or ())))

    def given(
        self, group: str, topic: str, queue_number: int, offsets: Sequence[int], *, pop_ms: int,
        invisible_ms: int, attempt: str | None, start: int,
    ) -> OrderedPop:  # fmt: skip
        """The row when messages are given out, with which others from `start` on are done already.

        Args:
            start: the group's offset, from which they were read.
        """
        before = self.find(group, topic, queue_number)
        done = self.done_offsets(group, topic, queue_number)
        first, last = offsets[0], offsets[-1]
        listed = sorted({*offsets, *(each for each in done if first <= each <= last)})[:OFFSETS_MAX]
        later = sorted(each for each in done if each >= start and not first <= each <= last)
        counts: dict[int, int] = {}
        if before is not None:
            is_same = attempt is not None and before.attempt == attempt
            earlier, given = before.counts or {}, set(offsets)
            for offset in before.offsets():
                if offset in given and (count := earlier.get(offset, 0) + (not is_same)):
                    counts[offset] = count
        return OrderedPop(
            attempt=attempt,
            done_bits=sum(1 << place for place, each in enumerate(listed) if each in done),
            invisible_ms=invisible_ms,
            last_ms=pop_ms,
            distances=[listed[0], *(each - listed[0] for each in listed[1:])],
            done_later=later[:OFFSETS_MAX] or None,
            counts=counts or None,
            pop_ms=pop_ms,
        )

    def acknowledged(
        self, group: str, topic: str, queue_number: int, done: Sequence[int], pop_ms: int
    ) -> OrderedPop | None:
        """The row when messages are acknowledged; None if their handle is void, or names none of
        the messages."""
        found = self._of_pop(group, topic, queue_number, pop_ms)
        if found is None:
            return None
        bits = 0
        for offset in done:
            if (place := found.place_of(offset)) is not None:
                bits |= 1 << place
        return replace(found, done_bits=found.done_bits | bits) if bits else None

    def hidden(
        self, group: str, topic: str, queue_number: int, offset: int, *, pop_ms: int,
        visible_ms: int,
    ) -> OrderedPop | None:  # fmt: skip
        """The row when a message becomes visible at another time; None if its handle is void."""
        found = self._of_pop(group, topic, queue_number, pop_ms)
        if found is None or offset not in found.offsets():
            return None
        return replace(found, visible_ms={**(found.visible_ms or {}), offset: visible_ms})

    def _of_pop(self, group: str, topic: str, queue_number: int, pop_ms: int) -> OrderedPop | None:
        found = self.find(group, topic, queue_number)
        return found if found is not None and found.pop_ms == pop_ms else None

    def put(self, group: str, topic: str, queue_number: int, row: OrderedPop | None) -> None:
        """Replaces a row; None removes it."""
        self._put(f"{topic}@{group}", queue_number, row)

    def _put(self, key: str, queue_number: int, row: OrderedPop | None) -> None:
        if row is not None:
            self._rows.setdefault(key, {})[queue_number] = row
        else:
            queues = self._rows.get(key, {})
            if queues.pop(queue_number, None) is None:
                return
            if not queues:
                del self._rows[key]
        self.is_changed = True
        self._on_change(key, queue_number)

    def rows_of(
        self, *, topic: str | None = None, group: str | None = None
    ) -> list[tuple[str, str, int]]:
        """Group, topic and queue of all rows of a topic, or of a group."""
        return [
            (its_group, its_topic, number)
            for key, queues in self._rows.items()
            for its_topic, _, its_group in [key.partition("@")]
            if topic in (None, its_topic) and group in (None, its_group)
            for number in queues
        ]

    def keep(self, is_wanted: Callable[[str, str], bool], now_ms: int) -> None:
        """Drops what was popped a day ago, and what belongs to no topic and group any more.

        Args:
            is_wanted: whether a topic and a group still exist.
        """
        for key, queues in list(self._rows.items()):
            topic, _, group = key.partition("@")
            wanted = is_wanted(topic, group)
            for number, each in list(queues.items()):
                if not wanted or now_ms - each.last_ms > _KEPT_MS:
                    self._put(key, number, None)

    def next_offsets(self) -> list[tuple[str, str, int, int]]:
        """Group, topic, queue and next offset of all."""
        return [
            (group, topic, number, each.next_offset())
            for key, queues in self._rows.items()
            for topic, _, group in [key.partition("@")]
            for number, each in queues.items()
        ]

    # For slaves, which copy single rows.

    def names(self) -> list[str]:
        """The keys of all rows: `topic@group`."""
        return list(self._rows)

    def row(self, key: str) -> Mapping[int, OrderedPop]:
        """The rows of a `topic@group`, by queue number."""
        return self._rows.get(key, {})

    def copy(self, key: str, rows: Mapping[int, Any]) -> None:
        """Makes rows as a master has them; None for one that is gone.

        Raises:
            msgspec.ValidationError: a row has another form.
        """
        for number, row in rows.items():
            self._put(key, number, None if row is None else row_of(row))

    def to_json(self) -> dict[str, Any]:
        """The table for its file; later changes do not show in it."""
        state = {"table": msgspec.to_builtins(self._rows, str_keys=True)}
        if (marks := self._marks()) is not None:
            state["marks"] = msgspec.to_builtins(marks, str_keys=True)
        return state

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from its file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        rows = msgspec.convert(
            state.get("table") or {}, dict[str, dict[int, OrderedPop]], strict=False
        )
        self._rows = {
            key: known
            for key, queues in rows.items()
            if (known := {number: each for number, each in queues.items() if each.distances})
        }
        marks = state.get("marks")
        self.marks = None if marks is None else msgspec.convert(marks, Marks, strict=False)
