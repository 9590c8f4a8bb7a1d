"""Records the messages that members of a consumer group got, and their outcomes, call by call.

The invariants of consumption check these records, which depend on no details of clients.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sprocket.message.message import StoredMessage
from sprocket.message.properties import RETRY_TOPIC
from sprocket.message.queue import QueueId
from sprocket.message.topic import retry_topic

if TYPE_CHECKING:
    from sprocket.testing.journal import Journal


@dataclass(slots=True, eq=False)
class Call:
    """One listener call, or one message that a poll returned.

    Attributes:
        queue, offset: where the message was read; for a retry, in the group's retry topic.
        times: number of deliveries before.
        began, ended: virtual time in seconds; None while the call runs.
        outcome: `done`, `later`, `dead`, or `gone` if its process ended first.
    """

    member: str
    queue: QueueId
    offset: int
    key: str
    times: int
    began: float
    ended: float | None = None
    outcome: str = ""


class Move(NamedTuple):
    """A new offset that an operator sets for a group in a queue, at a virtual time."""

    at: float
    offset: int


class GroupRecord:
    """The record of one group.

    Attributes:
        topics: the topics that it consumes.
        calls: all calls, in the order of their begins.
        finished: keys of messages that a member consumed.
        given_up: keys of messages that became dead letters, as far as members know.
        settled: by queue, when each offset was first settled: finished, sent back, or skipped by
            an operator. A move backwards makes offsets unsettled again.
        ever_settled: the same, without regard to moves.
        moves: by queue, the last move of an operator.
        passed: offsets that an operator made the group skip.
        moving: queues that an operator is moving now.
        gaps, overlaps: by cause, for how many seconds a queue had no owner, or two.
    """

    def __init__(self, journal: Journal, name: str, topics: tuple[str, ...]) -> None:
        self._journal = journal
        self.name = name
        self.topics = topics
        self.calls: list[Call] = []
        self.finished: set[str] = set()
        self.given_up: set[str] = set()
        self.settled: dict[QueueId, dict[int, float]] = defaultdict(dict)
        self.gaps: dict[str, list[float]] = defaultdict(list)
        self.overlaps: dict[str, list[float]] = defaultdict(list)
        self.ever_settled: dict[QueueId, dict[int, float]] = defaultdict(dict)
        self.moves: dict[QueueId, Move] = {}
        self.passed: set[tuple[QueueId, int]] = set()
        self.moving: set[QueueId] = set()

    def place(self, message: StoredMessage) -> QueueId:
        """The queue from which a message was read."""
        if RETRY_TOPIC in message.properties:
            return message.queue._replace(topic=retry_topic(self.name))
        return message.queue

    def begin(self, member: str, message: StoredMessage) -> Call:
        """Records that a member got a message."""
        (key,) = message.keys
        journal = self._journal
        queue, offset = self.place(message), int(message.queue_offset)
        call = Call(member, queue, offset, key, message.reconsume_times, journal.now)
        self.calls.append(call)
        journal.deliveries[key] += 1
        times = f" the {message.reconsume_times + 1}. time" if message.reconsume_times else ""
        journal.note(member, f"gets {queue} offset {offset}{times}:", key)
        return call

    def end(self, call: Call, outcome: str) -> None:
        """Records the outcome of a call: `done`, `later` or `dead`."""
        now = self._journal.now
        call.ended, call.outcome = now, outcome
        if outcome == "done":
            self.finished.add(call.key)
        elif outcome == "dead":
            self.given_up.add(call.key)
        self._journal.note(
            call.member, f"reports {outcome} for {call.queue} offset {call.offset}", call.key
        )

    def settle(self, call: Call) -> None:
        """Records that the group's offset may pass the message of a call."""
        now, move = self._journal.now, self.moves.get(call.queue)
        self.ever_settled[call.queue].setdefault(call.offset, now)
        if move is None or call.began >= move.at:
            self.settled[call.queue].setdefault(call.offset, now)

    def gone(self, call: Call) -> None:
        """Records that the process of a call ended before the call."""
        call.ended, call.outcome = self._journal.now, "gone"

    def move(self, queue: QueueId, offset: int, *, end: int) -> None:
        """Records a move: offsets before the new one count as settled, the others do not.

        Args:
            queue, offset: the new position.
            end: the queue's end offset.
        """
        now = self._journal.now
        self.moves[queue] = Move(now, offset)
        known = self.settled[queue]
        for each in [each for each in known if each >= offset]:
            del known[each]
        for each in range(min(offset, end)):
            if each not in known:
                self.passed.add((queue, each))
            known.setdefault(each, now)
            self.ever_settled[queue].setdefault(each, now)

    def wants(self, key: str) -> bool:
        """Whether a message must be consumed: no operator made the group skip it."""
        return self._journal.acknowledged[key] not in self.passed
