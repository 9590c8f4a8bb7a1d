"""Which queues a consumer should hold, and what to do about it: facts in, instructions out.

A queue goes through acquiring, held, releasing; whoever performs an instruction reports how it
ended, and gets what follows from that. Topics are looked at one by one, every 20 seconds and
whenever the group's members change. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from sprocket.client.assign import Strategy, average, sort_members
from sprocket.message.queue import QueueId


class Acquire(NamedTuple):
    """Find the queue's position (and, for ordered consumption, its lease), then fetch from it."""

    queue: QueueId


class Release(NamedTuple):
    """Stop fetching from the queue and commit its position."""

    queue: QueueId


Instruction = Acquire | Release


class _Stage(Enum):
    ACQUIRING = "acquiring"
    HELD = "held"
    RELEASING = "releasing"


class Rebalance:
    """The queues of one consumer.

    Args:
        member: this consumer's client id.
        strategy: see `sprocket.client.assign`; all members of a group need the same.
    """

    def __init__(self, member: str, strategy: Strategy = average) -> None:
        self.member = member
        self._strategy = strategy
        self._stages: dict[QueueId, _Stage] = {}
        #: By topic, the queues that the last look gave this member.
        self._wanted: dict[str, frozenset[QueueId]] = {}

    @property
    def held(self) -> list[QueueId]:
        """Queues that are held now."""
        return sorted(queue for queue, stage in self._stages.items() if stage is _Stage.HELD)

    def wanted(self, topic: str) -> list[QueueId]:
        """The topic's queues that the last look gave this member, sorted."""
        return sorted(self._wanted.get(topic, ()))

    def seen(
        self, topic: str, queues: Iterable[QueueId], members: Sequence[str]
    ) -> list[Instruction]:
        """What the topic's route and the group's member list say now.

        A list without this member is too old to act on: it says that the broker does not know us
        yet, not that we should stop.
        """
        if self.member not in members:
            return []
        ordered = sorted(set(queues))
        mine = self._strategy(self.member, ordered, sort_members(set(members)))
        self._wanted[topic] = frozenset(mine) & frozenset(ordered)
        return self._settle(topic)

    def unsubscribed(self, topic: str) -> list[Instruction]:
        """The topic is of no interest any more."""
        self._wanted.pop(topic, None)
        return self._settle(topic)

    def left(self) -> list[Instruction]:
        """The consumer stops: everything is to be released."""
        topics = {queue.topic for queue in self._stages}
        self._wanted.clear()
        return [each for topic in sorted(topics) for each in self._settle(topic)]

    def acquired(self, queue: QueueId) -> list[Instruction]:
        """An `Acquire` succeeded."""
        assert self._stages.get(queue) is _Stage.ACQUIRING, queue
        self._stages[queue] = _Stage.HELD
        return self._settle(queue.topic)

    def gave_up(self, queue: QueueId) -> None:
        """An `Acquire` failed, or a held queue was lost; the next look tries again."""
        assert queue in self._stages, queue
        if self._stages[queue] is not _Stage.RELEASING:
            del self._stages[queue]

    def released(self, queue: QueueId) -> list[Instruction]:
        """A `Release` is done."""
        assert self._stages.get(queue) is _Stage.RELEASING, queue
        del self._stages[queue]
        return self._settle(queue.topic)

    def _settle(self, topic: str) -> list[Instruction]:
        """Releases first, so that a queue never counts twice against anything."""
        wanted = self._wanted.get(topic, frozenset())
        instructions: list[Instruction] = []
        for queue in sorted(self._stages):
            if queue.topic != topic or queue in wanted:
                continue
            if self._stages[queue] is _Stage.HELD:
                self._stages[queue] = _Stage.RELEASING
                instructions.append(Release(queue))
        for queue in sorted(wanted):
            if queue not in self._stages:
                self._stages[queue] = _Stage.ACQUIRING
                instructions.append(Acquire(queue))
        return instructions

    def validate(self) -> None:
        """Checks what must always hold."""
        for topic, wanted in self._wanted.items():
            assert all(queue.topic == topic for queue in wanted), topic
        for queue, stage in self._stages.items():
            if stage is _Stage.HELD:
                assert queue in self._wanted.get(queue.topic, ()), f"{queue} is held unwanted"
