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
        #: By topic: a topic's look goes over its own queues only.
        self._stages: dict[str, dict[QueueId, _Stage]] = {}
        #: By topic, the queues that the last look gave this member.
        self._wanted: dict[str, frozenset[QueueId]] = {}

    @property
    def held(self) -> list[QueueId]:
        """Queues that are held now."""
        stages = (item for topic in self._stages.values() for item in topic.items())
        return sorted(queue for queue, stage in stages if stage is _Stage.HELD)

    def wanted(self, topic: str) -> list[QueueId]:
        """The topic's queues that the last look gave this member, sorted."""
        return sorted(self._wanted.get(topic, ()))

    def update(
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
        self._wanted.clear()
        return [each for topic in sorted(self._stages) for each in self._settle(topic)]

    def acquired(self, queue: QueueId) -> list[Instruction]:
        """An `Acquire` succeeded."""
        assert self._stage(queue) is _Stage.ACQUIRING, queue
        self._stages[queue.topic][queue] = _Stage.HELD
        return self._settle_queues(queue.topic, [queue])

    def gave_up(self, queue: QueueId) -> None:
        """An `Acquire` failed, or a held queue was lost; the next look tries again."""
        stage = self._stage(queue)
        assert stage is not None, queue
        if stage is not _Stage.RELEASING:
            self._forget(queue)

    def released(self, queue: QueueId) -> list[Instruction]:
        """A `Release` is done."""
        assert self._stage(queue) is _Stage.RELEASING, queue
        self._forget(queue)
        return self._settle_queues(queue.topic, [queue])

    def _stage(self, queue: QueueId) -> _Stage | None:
        return self._stages.get(queue.topic, {}).get(queue)

    def _forget(self, queue: QueueId) -> None:
        stages = self._stages[queue.topic]
        del stages[queue]
        if not stages:
            del self._stages[queue.topic]

    def _settle(self, topic: str) -> list[Instruction]:
        queues = self._wanted.get(topic, frozenset()) | self._stages.get(topic, {}).keys()
        return self._settle_queues(topic, sorted(queues))

    def _settle_queues(self, topic: str, queues: Sequence[QueueId]) -> list[Instruction]:
        """What is to be done with some queues of a topic, releases first.

        Releases come first so that a queue never counts twice against anything. After each report
        only the queue it is about is settled: a look at all of them for each one that was acquired
        would cost quadratically, and keep the loop for seconds at some thousand queues.
        """
        wanted = self._wanted.get(topic, frozenset())
        releases: list[Instruction] = []
        acquires: list[Instruction] = []
        for queue in queues:
            stage = self._stage(queue)
            if stage is _Stage.HELD and queue not in wanted:
                self._stages[topic][queue] = _Stage.RELEASING
                releases.append(Release(queue))
            elif stage is None and queue in wanted:
                self._stages.setdefault(topic, {})[queue] = _Stage.ACQUIRING
                acquires.append(Acquire(queue))
        return releases + acquires

    def validate(self) -> None:
        """Checks what must always hold."""
        for topic, wanted in self._wanted.items():
            assert all(queue.topic == topic for queue in wanted), topic
        for topic, stages in self._stages.items():
            for queue, stage in stages.items():
                if stage is _Stage.HELD:
                    assert queue in self._wanted.get(topic, ()), f"{queue} is held unwanted"
