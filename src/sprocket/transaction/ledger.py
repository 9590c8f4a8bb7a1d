"""Which half messages are undecided: a fold over the half queue and the op queue. Pure.

Every record of the half queue adds a copy, every record of the op queue takes copies away. A copy
that names an earlier one takes its place: a transaction has one copy that counts, the newest. The
positions behind which all is done are those that Java keeps as the offsets of the group
`CID_RMQ_SYS_TRANS`, so a ledger can be folded from there on, by either broker.

How the newest transactions ended is remembered, a bounded number of them, so that an end that is
told twice, or late, does no harm.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from sprocket.transaction.half import Half


class Outcome(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    PARKED = "parked"


class Positions(NamedTuple):
    """Where a fold may begin: all copies and words before are done with."""

    half: int
    op: int


class Ledger:
    """All undecided halves.

    Args:
        half_at, op_at: where in their queues the fold begins.
        outcomes_max: ends that are remembered.

    Attributes:
        by_topic: how many are undecided, by the topic that they belong to.
        changes: how often that changed.
    """

    def __init__(self, *, half_at: int = 0, op_at: int = 0, outcomes_max: int = 100_000) -> None:
        self._outcomes_max = outcomes_max
        self.changes = 0
        self.begin(Positions(half_at, op_at))

    def begin(self, at: Positions) -> None:
        """Forgets everything; the fold begins at these positions."""
        self._half_next = at.half
        self._op_next = at.op
        #: By offset, which rises.
        self._pending: OrderedDict[int, Half] = OrderedDict()
        self.by_topic: dict[str, int] = {}
        #: Of transactions that have more than one copy, by root, the one that counts.
        self._newest: dict[int, int] = {}
        self._outcomes: OrderedDict[int, Outcome] = OrderedDict()
        #: Copies that are done with and of which no op record tells yet.
        self._untold: list[int] = []
        #: (op offset, highest copy it tells of) of op records that count.
        self._told: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, offset: object) -> bool:
        return offset in self._pending

    @property
    def half_next(self) -> int:
        """Offset of the half queue's next record."""
        return self._half_next

    @property
    def untold(self) -> int:
        """How many copies wait to be told of."""
        return len(self._untold)

    def first(self) -> Half | None:
        """The copy that holds up the position in the half queue."""
        return next(iter(self._pending.values()), None)

    def get(self, offset: int) -> Half | None:
        """The undecided copy at an offset."""
        return self._pending.get(offset)

    def newest(self, root: int) -> Half | None:
        """The copy of a transaction that counts; None if it is not undecided."""
        return self._pending.get(self._newest.get(root, root))

    def since(self, offset: int) -> list[Half]:
        """Undecided copies from an offset on."""
        found: list[Half] = []
        for half in reversed(self._pending.values()):
            if half.offset < offset:
                break
            found.append(half)
        return found[::-1]

    def outcome(self, root: int) -> Outcome | None:
        """How a transaction ended, as far as that is remembered."""
        return self._outcomes.get(root)

    def add(self, half: Half, *, replaces: int | None = None) -> None:
        """Takes in the next record of the half queue.

        Args:
            replaces: the root of the transaction, where the record itself does not say.
        """
        if half.offset < self._half_next:
            return
        self._half_next = half.offset + 1
        if replaces is not None and replaces < half.offset:
            half = half._replace(root=replaces)
        before = self.newest(half.root)
        if before is not None:
            self._drop(before.offset)
        self._pending[half.offset] = half
        self._count(half.topic, 1)
        if half.root != half.offset:
            self._newest[half.root] = half.offset

    def settle(self, root: int, outcome: Outcome) -> None:
        """A transaction has ended; the copy that counts is to be told of."""
        half = self.newest(root)
        if half is not None:
            self._newest.pop(half.root, None)
            self._drop(half.offset)
        self._outcomes[root] = outcome
        self._outcomes.move_to_end(root)
        if len(self._outcomes) > self._outcomes_max:
            self._outcomes.popitem(last=False)

    def discard(self, offset: int) -> None:
        """A copy cannot be read any more; it is done with."""
        half = self._pending.get(offset)
        if half is not None:
            self._newest.pop(half.root, None)
            self._drop(offset)

    def _drop(self, offset: int) -> None:
        self._count(self._pending.pop(offset).topic, -1)
        self._untold.append(offset)

    def _count(self, topic: str, change: int) -> None:
        self.changes += 1
        count = self.by_topic.get(topic, 0) + change
        if count:
            self.by_topic[topic] = count
        else:
            self.by_topic.pop(topic, None)

    def tell(self, count_max: int) -> list[int]:
        """The next copies for an op record; `told` takes them off once it is stored."""
        return self._untold[:count_max]

    def told(self, op_offset: int, offsets: Iterable[int]) -> None:
        """Takes in the next record of the op queue."""
        if op_offset < self._op_next:
            return
        self._op_next = op_offset + 1
        gone = set(offsets)
        for offset in gone:
            half = self._pending.pop(offset, None)
            if half is None:
                continue
            self._count(half.topic, -1)
            if self._newest.get(half.root) == offset:
                del self._newest[half.root]
        if self._untold:
            self._untold = [offset for offset in self._untold if offset not in gone]
        self._told.append((op_offset, max(gone, default=-1)))

    def positions(self) -> Positions:
        """Where a fold may begin that is to know all that is undecided now."""
        first = min(self._first_pending(), min(self._untold, default=self._half_next))
        while self._told and self._told[0][1] < first:
            self._told.popleft()
        return Positions(first, self._told[0][0] if self._told else self._op_next)

    def _first_pending(self) -> int:
        return next(iter(self._pending), self._half_next)

    def validate(self) -> None:
        """Asserts what must hold between two calls."""
        offsets = list(self._pending)
        assert offsets == sorted(offsets)
        assert all(offset == half.offset for offset, half in self._pending.items())
        roots = [half.root for half in self._pending.values()]
        assert len(roots) == len(set(roots))
        for root, offset in self._newest.items():
            assert self._pending[offset].root == root
        assert sum(self.by_topic.values()) == len(self._pending)
        assert all(count > 0 for count in self.by_topic.values())
        assert not set(self._untold) & set(self._pending)
        assert len(self._outcomes) <= self._outcomes_max
        assert all(offset < self._half_next for offset in offsets)
