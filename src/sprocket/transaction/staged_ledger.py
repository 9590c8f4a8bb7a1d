"""The writers of staged batches, what each has staged, and what was decided last. Pure.

It is a fold over the two queues of `sprocket.transaction.staged`: each record of queue 0 adds a
batch to an attempt, each record of queue 1 says what a writer's newest transaction is and how far.
A master applies each record when it is stored; a start, or a slave that becomes the master, reads
them. All numbers are bounded, since anybody who may send may stage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sprocket.base.errors import InvalidParameter, NoPermission, SystemBusy
from sprocket.transaction.staged import StagedDecision, StagedHead

#: Writers that are remembered, and batches that are staged and not decided, at most.
WRITERS_MAX = 10_000
#: Writers of one user, so that nobody takes the places of all others.
WRITERS_OF_USER_MAX = 5_000
BATCHES_MAX = 262_144
#: A batch that is staged so long is dropped: whoever staged it is gone.
STAGED_MS_MAX = 6 * 3_600_000
#: What is known of a writer is stored again after this time, ms: so it does not leave with the
#: oldest file of the log, and a start reads little.
RENEW_MS = 3_600_000


class Attempt(NamedTuple):
    """One of those who make a part of a transaction.

    Attributes:
        batches: by number, the log offset of each staged record.
        first: the offset of its first record in queue 0.
        staged_ms: when that was stored.
        topics: the topics of its messages, with the highest queue in each.
        counts: of messages, by number.
    """

    writer: str
    batch: int
    name: str
    first: int
    staged_ms: int
    batches: dict[int, int]
    counts: dict[int, int]
    topics: dict[str, int]


@dataclass(slots=True)
class Writer:
    """What is known of a writer.

    Attributes:
        owner: who signed its newest decision; empty without access control.
        last: its newest transaction that is decided; None if none is.
        last_at: the offset of that record in queue 1.
        last_log_offset: its log offset.
        stored_ms: when that record was stored.
        attempts: what is staged, by name, of that transaction until it is finished, and of later
            ones.
    """

    owner: str
    last: StagedDecision | None = None
    last_at: int = 0
    last_log_offset: int = 0
    stored_ms: int = 0
    attempts: dict[str, Attempt] = field(default_factory=dict)


class StagedLedger:
    """All writers of one broker."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Clears it, for a fold."""
        self._writers: dict[str, Writer] = {}
        #: In the order of their first records, by writer and name.
        self._attempts: OrderedDict[tuple[str, str], Attempt] = OrderedDict()
        #: Writers with a decision, in the order of their newest records.
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._count = 0
        self._staged_next = 0
        self._decided_next = 0

    @property
    def batches(self) -> int:
        """How many batches are staged."""
        return self._count

    @property
    def writers(self) -> Mapping[str, Writer]:
        """What is known, by writer; for reading only."""
        return self._writers

    def unfinished(self) -> Iterator[Writer]:
        """Writers whose newest transaction is decided and not published yet."""
        for name in self._remembered:
            writer = self._writers[name]
            if writer.last is not None and not writer.last.is_finished:
                yield writer

    def owned(self, name: str, owner: str) -> Writer | None:
        """What is known of a writer; None if nothing is.

        Raises:
            NoPermission: it is somebody else's.
        """
        writer = self._writers.get(name)
        # Who writes on when access control is switched on or off is not somebody else.
        if writer is not None and writer.owner and owner and writer.owner != owner:
            raise NoPermission(f"writer {name} belongs to another user")
        return writer

    def is_staged(self, head: StagedHead) -> bool:
        """Whether a batch is staged already; if not, it may be.

        What is staged for a transaction that is decided counts as staged too: who makes it again
        does not know that yet, and the batch will never be needed.

        Raises:
            NoPermission: the writer is somebody else's.
            InvalidParameter: a later transaction is decided.
            SystemBusy: too much is staged.
        """
        writer = self.owned(head.writer, head.owner)
        if writer is not None:
            if writer.last is not None and head.batch <= writer.last.batch:
                if head.batch == writer.last.batch:
                    return True
                raise InvalidParameter(
                    f"transaction {head.batch} of writer {head.writer} is over: "
                    f"{writer.last.batch} is decided"
                )
            attempt = writer.attempts.get(head.attempt)
            if attempt is not None and attempt.batch != head.batch:
                raise InvalidParameter(
                    f"attempt {head.attempt} belongs to transaction {attempt.batch}"
                )
            if attempt is not None and head.number in attempt.batches:
                return True
        else:
            self._check_room(head.owner)
        if self._count >= BATCHES_MAX:
            raise SystemBusy(f"{self._count} batches are staged, the broker's limit")
        return False

    def earlier(
        self, name: str, owner: str, batch: int, *, is_first: bool, decided_by: str = ""
    ) -> StagedDecision | None:
        """The decision of a transaction that was made already; None if it may be made now.

        Args:
            is_first: whether nothing need be known of the writer.
            decided_by: the broker that decides, if it is another one.

        Raises:
            NoPermission: the writer is somebody else's.
            InvalidParameter: a later transaction is decided, or what was decided is not known here,
                or not any more, so that it is unknown whether this one was.
            SystemBusy: there are too many writers.
        """
        writer = self.owned(name, owner)
        last = None if writer is None else writer.last
        if last is None:
            if not is_first:
                raise InvalidParameter(
                    f"nothing is known of writer {name}, so transaction {batch} may be decided "
                    "already"
                )
            if writer is None:
                self._check_room(owner)
            return None
        if batch < last.batch:
            raise InvalidParameter(
                f"transaction {batch} of writer {name} is over: {last.batch} is decided"
            )
        if last.decided_by != decided_by and (batch == last.batch or not is_first):
            raise InvalidParameter(
                f"transaction {last.batch} of writer {name} was decided by "
                f"{last.decided_by or 'this broker'}, which must decide the next ones too"
            )
        if batch > last.batch and not last.is_finished:
            raise SystemBusy(f"transaction {last.batch} of writer {name} is not finished yet")
        return last if batch == last.batch else None

    def _check_room(self, owner: str) -> None:
        """Raises SystemBusy if there may be no new writer of a user."""
        if len(self._writers) >= WRITERS_MAX:
            raise SystemBusy(f"the broker knows {len(self._writers)} writers, its limit")
        mine = sum(each.owner == owner for each in self._writers.values()) if owner else 0
        if mine >= WRITERS_OF_USER_MAX:
            raise SystemBusy(f"user {owner} has {mine} writers, the limit of one user")

    def apply_staged(
        self, head: StagedHead, *, offset: int, log_offset: int, stored_ms: int
    ) -> None:
        """Adds the batch of the next record of queue 0."""
        self._staged_next = offset + 1
        writer = self._writers.setdefault(head.writer, Writer(head.owner))
        attempt = writer.attempts.get(head.attempt)
        # A start reads what was dropped already: one that is old, or one whose transaction was
        # decided without it, as its name would not have been taken for another one otherwise.
        if attempt is not None and (
            attempt.batch != head.batch or self._is_old(writer, attempt, stored_ms)
        ):
            self._drop(writer, attempt)
            attempt = None
        if attempt is None:
            attempt = Attempt(head.writer, head.batch, head.attempt, offset, stored_ms, {}, {}, {})
            writer.attempts[head.attempt] = attempt
            self._attempts[head.writer, head.attempt] = attempt
        if head.number not in attempt.batches:
            self._count += 1
            attempt.batches[head.number] = log_offset
            attempt.counts[head.number] = head.messages
        attempt.topics[head.topic] = max(attempt.topics.get(head.topic, 0), head.queue)

    def apply_decision(
        self, decision: StagedDecision, *, offset: int, log_offset: int, stored_ms: int
    ) -> None:
        """Applies the next record of queue 1: drops the attempts that do not count."""
        self._decided_next = offset + 1
        writer = self._writers.setdefault(decision.writer, Writer(decision.owner))
        writer.owner, writer.last, writer.last_at = decision.owner, decision, offset
        writer.last_log_offset, writer.stored_ms = log_offset, stored_ms
        self._remembered[decision.writer] = None
        self._remembered.move_to_end(decision.writer)
        kept = {name for name, _ in decision.attempts}
        for attempt in list(writer.attempts.values()):
            # A start reads all batches first. Those behind this record are of a writer that began
            # anew when this decision was forgotten.
            is_before = next(iter(attempt.batches.values())) < log_offset
            if is_before and attempt.batch <= decision.batch and attempt.name not in kept:
                self._drop(writer, attempt)

    def staged_of(self, writer: Writer, attempts: Sequence[tuple[str, int]]) -> list[int] | None:
        """The log offsets of the batches of some attempts, in order; None if not all are there."""
        found: list[int] = []
        for name, count in attempts:
            attempt = writer.attempts.get(name)
            if count and (attempt is None or len(attempt.batches) != count):
                return None
            if count and attempt is not None:
                try:
                    found += [attempt.batches[number] for number in range(count)]
                except KeyError:
                    return None
        return found

    def positions(self) -> tuple[int, int]:
        """The offsets in both queues before which no record is needed."""
        oldest = next(iter(self._attempts.values()), None)
        staged = self._staged_next if oldest is None else oldest.first
        name = next(iter(self._remembered), None)
        decided = self._decided_next if name is None else self._writers[name].last_at
        return staged, decided

    def drop_old(self, now_ms: int) -> None:
        """Drops what was staged long ago and never decided, and writers whose time is over."""
        for name in list(self._remembered):
            writer, last = self._writers[name], self._writers[name].last
            if last is not None and _is_over(last, now_ms):
                writer.last = None
                del self._remembered[name]
                if not writer.attempts:
                    del self._writers[name]
        while self._attempts:
            attempt = next(iter(self._attempts.values()))
            writer = self._writers[attempt.writer]
            if not self._is_old(writer, attempt, now_ms):
                break
            self._drop(writer, attempt)
            if writer.last is None and not writer.attempts:
                del self._writers[attempt.writer]

    def to_renew(self, now_ms: int) -> list[Writer]:
        """Writers whose newest record is old: it has to be stored again, the oldest first."""
        found = []
        for name in self._remembered:
            writer = self._writers[name]
            if now_ms - writer.stored_ms < RENEW_MS:
                break
            if writer.last is not None and writer.last.is_finished:
                found.append(writer)
        return found

    @staticmethod
    def _is_old(writer: Writer, attempt: Attempt, now_ms: int) -> bool:
        """Whether nobody will decide that an attempt counts."""
        is_used = writer.last is not None and attempt.batch == writer.last.batch
        return not is_used and now_ms - attempt.staged_ms >= STAGED_MS_MAX

    def _drop(self, writer: Writer, attempt: Attempt) -> None:
        del writer.attempts[attempt.name]
        del self._attempts[attempt.writer, attempt.name]
        self._count -= len(attempt.batches)

    def validate(self) -> None:
        """Asserts the invariants between two calls."""
        assert self._count == sum(len(attempt.batches) for attempt in self._attempts.values())
        firsts = [attempt.first for attempt in self._attempts.values()]
        assert firsts == sorted(firsts)
        places = [self._writers[name].last_at for name in self._remembered]
        assert places == sorted(places)
        for name, writer in self._writers.items():
            assert writer.last is not None or writer.attempts, name
            for each in writer.attempts.values():
                assert self._attempts[name, each.name] is each
                assert set(each.batches) == set(each.counts)


def _is_over(decision: StagedDecision, now_ms: int) -> bool:
    """Whether a decision need not be remembered any more."""
    return decision.is_finished and now_ms - decision.at_ms >= decision.keep_ms
