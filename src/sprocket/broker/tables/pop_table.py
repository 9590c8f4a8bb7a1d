"""What the offsets of pop consumers need besides: messages in flight, void handles, marks. Pure.

A pop moves its group's offset behind the messages that it gives out, and writes a check point of
them to the log. The offsets are saved every few seconds; `marks` say up to which record about
popped messages the saved ones are right. A start applies the later records, so that no message is
given out before its time. `void_ms` keeps when an operator reset a group in a queue: what was
popped until then comes again by the reset or not at all, and its handles are void.

It is saved in the file of the offsets, as `popTable`. Java does not read that; from a file of Java
there are no marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

#: Numbers by `topic@group`, and by queue.
_Numbers = dict[str, dict[int, int]]


def _key(group: str, topic: str) -> str:
    return f"{topic}@{group}"


class PopTable:
    """Messages in flight, void handles and marks.

    Attributes:
        marks: by topic and queue, the offset of the first record that the table has not applied;
            None until a start has found the records.
    """

    def __init__(self) -> None:
        self._flying: _Numbers = {}
        self._void_ms: _Numbers = {}
        self.marks: dict[str, dict[int, int]] | None = None

    @property
    def is_used(self) -> bool:
        """Whether there is anything to save."""
        return bool(self._flying or self._void_ms or self.marks)

    def in_flight(self, group: str, topic: str, queue_number: int) -> int:
        """How many messages of a queue the group has popped and not acknowledged."""
        return self._flying.get(_key(group, topic), {}).get(queue_number, 0)

    def flying(self, key: str) -> Mapping[int, int]:
        """The same by queue, for a `topic@group`."""
        return self._flying.get(key, {})

    def voids(self, key: str) -> Mapping[int, int]:
        """By queue, up to which time of a pop the handles of a `topic@group` are void."""
        return self._void_ms.get(key, {})

    def void_keys(self) -> list[str]:
        """Every `topic@group` of which some handles are void."""
        return list(self._void_ms)

    def copy(self, key: str, flying: Mapping[int, int], voids: Mapping[int, int]) -> None:
        """Makes the numbers of a `topic@group` as a master has them, of the queues that it names;
        0 in flight is none."""
        for table, numbers in ((self._flying, flying), (self._void_ms, voids)):
            queues = table.setdefault(key, {})
            queues.update(numbers)
            for number in [number for number, value in queues.items() if not value]:
                del queues[number]
            if not queues:
                del table[key]

    def add(self, group: str, topic: str, queue_number: int, count: int) -> None:
        """Counts messages that were popped, or below 0 that are done. An acknowledgement that a
        client repeats may count twice, so the number never goes below 0."""
        key = _key(group, topic)
        queues = self._flying.setdefault(key, {})
        left = queues.get(queue_number, 0) + count
        if left > 0:
            queues[queue_number] = left
            return
        queues.pop(queue_number, None)
        if not queues:
            del self._flying[key]

    def reset(self, group: str, topic: str, queue_number: int, now_ms: int) -> None:
        """Makes all handles of a group in a queue void that were given out until now."""
        self._void_ms.setdefault(_key(group, topic), {})[queue_number] = now_ms
        self._flying.get(_key(group, topic), {}).pop(queue_number, None)

    def void_ms(self, group: str, topic: str, queue_number: int) -> int:
        """Up to which time of a pop its handles are void; -1 if none are."""
        if not self._void_ms:
            return -1
        return self._void_ms.get(_key(group, topic), {}).get(queue_number, -1)

    def mark(self, topic: str, queue_number: int, offset: int) -> None:
        """The table has applied all records of a queue before an offset."""
        if self.marks is not None:
            self.marks.setdefault(topic, {})[queue_number] = offset

    def forget(self, key: str, queues: Iterable[int], now_ms: int) -> None:
        """Makes all handles of a `topic@group` void, since topic or group is deleted: one that is
        made again under its name has other messages."""
        if self._flying.pop(key, None) or key in self._void_ms or self.marks:
            self._void_ms[key] = dict.fromkeys(queues, now_ms)

    def drop(self, key: str) -> None:
        """Forgets all of a `topic@group` whose handles can name no message any more."""
        self._flying.pop(key, None)
        self._void_ms.pop(key, None)

    def forget_voids(self, before_ms: int) -> None:
        """Removes resets of which no handle can be left: they are older than any pop in flight."""
        for key, queues in list(self._void_ms.items()):
            for number in [each for each, at_ms in queues.items() if at_ms < before_ms]:
                del queues[number]
            if not queues:
                del self._void_ms[key]

    def to_json(self) -> dict[str, Any]:
        """The table for the file; later changes do not show in it."""
        return {
            "inFlight": {key: dict(queues) for key, queues in self._flying.items()},
            "voidMs": {key: dict(queues) for key, queues in self._void_ms.items()},
            "marks": {topic: dict(queues) for topic, queues in (self.marks or {}).items()},
        }

    def load(self, state: Mapping[str, Any] | None) -> None:
        """Loads the table from the file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        read = msgspec.convert(state or {}, dict[str, _Numbers], strict=False)
        self._flying, self._void_ms = read.get("inFlight", {}), read.get("voidMs", {})
        self.marks = read.get("marks") or None
