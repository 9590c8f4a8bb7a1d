"""What the members of one consumer group were given and what they did with it, call by call.

It is what invariants of consumption look at, and knows nothing of how clients work.
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
        queue, offset: where the message lies; of a returned one in the group's retry topic.
        times: how many times it came back before.
        began, ended: in seconds of virtual time; None while it goes on.
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
    """An operator's word where a group goes on in a queue, at a moment of virtual time."""

    at: float
    offset: int


class GroupRecord:
    """The record of one group.

    Attributes:
        topics: what it consumes.
        calls: all calls, in the order of their beginnings.
        finished: keys of messages that a member was done with.
        given_up: keys of messages that went to the dead letters, as far as members know.
        settled: by queue, when each offset was settled first: finished, given back, or passed by
            on purpose.
        ever_settled: the same, whatever operators did since.
        moves: by queue, the last word of an operator.
        passed: places that an operator moved the group past.
        moving: queues that an operator is about to move.
        gaps, overlaps: by what happened, seconds that a queue had no owner after it, or two.
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
        """The queue that a message was read from."""
        if RETRY_TOPIC in message.properties:
            return message.queue._replace(topic=retry_topic(self.name))
        return message.queue

    def begin(self, member: str, message: StoredMessage) -> Call:
        """A member got a message."""
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
        """A member is done with a message, wants it later, or gave it up for dead."""
        now = self._journal.now
        call.ended, call.outcome = now, outcome
        if outcome == "done":
            self.finished.add(call.key)
        elif outcome == "dead":
            self.given_up.add(call.key)
        self._journal.note(
            call.member, f"says {outcome} to {call.queue} offset {call.offset}", call.key
        )

    def settle(self, call: Call) -> None:
        """From now on the group's offset may pass it."""
        now, move = self._journal.now, self.moves.get(call.queue)
        self.ever_settled[call.queue].setdefault(call.offset, now)
        if move is None or call.began >= move.at:
            self.settled[call.queue].setdefault(call.offset, now)

    def gone(self, call: Call) -> None:
        """A call's process ended before it did."""
        call.ended, call.outcome = self._journal.now, "gone"

    def move(self, queue: QueueId, offset: int, *, end: int) -> None:
        """A queue's position is set: what lies before counts as settled, the rest does not.

        Args:
            end: where the queue ended then.
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
        """Whether a message must be consumed, as far as operators let it."""
        return self._journal.acknowledged[key] not in self.passed
