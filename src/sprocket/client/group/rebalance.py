"""The rebalance: which queues a consumer should hold, and how to get there.

It takes queues and members, and returns instructions. A queue goes through the stages acquiring,
held and releasing. The caller performs each instruction and reports its result, which may lead to
further instructions. Topics are rebalanced one by one, every 20 seconds and whenever the group's
members change. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from sprocket.client.assign import Strategy, average, sort_members
from sprocket.client.base.user_code import call_on_loop
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
        #: By topic, so that the rebalance of one topic visits its own queues only.
        self._stages: dict[str, dict[QueueId, _Stage]] = {}
        #: By topic, the queues that the last rebalance assigned to this member.
        self._wanted: dict[str, frozenset[QueueId]] = {}

    @property
    def held(self) -> list[QueueId]:
        """The queues that are held now, sorted."""
        stages = (item for topic in self._stages.values() for item in topic.items())
        return sorted(queue for queue, stage in stages if stage is _Stage.HELD)

    def wanted(self, topic: str) -> list[QueueId]:
        """The topic's queues that the last rebalance assigned to this member, sorted."""
        return sorted(self._wanted.get(topic, ()))

    def update(
        self, topic: str, queues: Iterable[QueueId], members: Sequence[str]
    ) -> list[Instruction]:
        """Rebalances a topic with the queues of its route and the members of the group.

        A member list without this member is ignored: it means that the broker does not know this
        member yet, not that the member should release its queues.
        """
        if self.member not in members:
            return []
        ordered = sorted(set(queues))
        mine = call_on_loop(self._strategy, self.member, ordered, sort_members(set(members)))
        self._wanted[topic] = frozenset(mine) & frozenset(ordered)
        return self._settle(topic)

    def unsubscribed(self, topic: str) -> list[Instruction]:
        """Returns the instructions after the topic was unsubscribed."""
        self._wanted.pop(topic, None)
        return self._settle(topic)

    def left(self) -> list[Instruction]:
        """Returns the instructions to release all queues, for a consumer that stops."""
        self._wanted.clear()
        return [each for topic in sorted(self._stages) for each in self._settle(topic)]

    def acquired(self, queue: QueueId) -> list[Instruction]:
        """Reports that an `Acquire` succeeded."""
        assert self._stage(queue) is _Stage.ACQUIRING, queue
        self._stages[queue.topic][queue] = _Stage.HELD
        return self._settle_queues(queue.topic, [queue])

    def gave_up(self, queue: QueueId) -> None:
        """Reports that an `Acquire` failed or a held queue was lost; the next rebalance retries."""
        stage = self._stage(queue)
        assert stage is not None, queue
        if stage is not _Stage.RELEASING:
            self._forget(queue)

    def released(self, queue: QueueId) -> list[Instruction]:
        """Reports that a `Release` is done."""
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

    # An instruction is performed asynchronously, so the wish may change meanwhile. A queue that is
    # being acquired or released gets no new instruction: the report of its end compares the wish
    # again. A report concerns one queue, so only this one is compared; comparing all queues after
    # each report would be quadratic and block the loop for seconds at some thousand queues.
    def _settle_queues(self, topic: str, queues: Sequence[QueueId]) -> list[Instruction]:
        """Returns the instructions for some queues of a topic, releases first.

        Releases come first so that no limit counts a queue twice.
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
        """Checks the invariants."""
        for topic, wanted in self._wanted.items():
            assert all(queue.topic == topic for queue in wanted), topic
        for topic, stages in self._stages.items():
            for queue, stage in stages.items():
                if stage is _Stage.HELD:
                    assert queue in self._wanted.get(topic, ()), f"{queue} is held unwanted"
