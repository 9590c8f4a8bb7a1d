"""The undecided half messages: a fold over the half queue and the op queue. Pure.

Each record of the half queue adds a copy, each record of the op queue removes copies. A copy that
names an earlier one replaces it: only the newest copy of a transaction counts. The positions before
which everything is finished are stored as offsets of the group `CID_RMQ_SYS_TRANS`, as in Java, so
either broker can start a fold from there.

The outcomes of a bounded number of the newest transactions are remembered, so that a repeated or
late end does no harm.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from sprocket.transaction.half import Half


class EndState(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    PARKED = "parked"


class LedgerStart(NamedTuple):
    """Where a fold may begin: all halves and op records before are finished."""

    half: int
    op: int


class Ledger:
    """All undecided halves.

    Args:
        half_at, op_at: the offsets in their queues where the fold begins.
        outcomes_max: the number of outcomes that are remembered.

    Attributes:
        by_topic: the number of undecided halves by their own topic.
        changes: the number of changes of `by_topic`.
    """

    def __init__(self, *, half_at: int = 0, op_at: int = 0, outcomes_max: int = 100_000) -> None:
        self._outcomes_max = outcomes_max
        self.changes = 0
        self.begin(LedgerStart(half_at, op_at))

    def begin(self, at: LedgerStart) -> None:
        """Clears the ledger; the fold begins at these positions."""
        self._half_next = at.half
        self._op_next = at.op
        #: By offset, in rising order.
        self._pending: OrderedDict[int, Half] = OrderedDict()
        self.by_topic: dict[str, int] = {}
        #: For transactions with more than one copy: from root to the newest copy's offset.
        self._newest: dict[int, int] = {}
        self._outcomes: OrderedDict[int, EndState] = OrderedDict()
        #: Finished copies that no op record lists yet.
        self._without_op: list[int] = []
        #: (op offset, highest copy in its list) of op records that a fold still needs.
        self._op_records: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, offset: object) -> bool:
        return offset in self._pending

    @property
    def half_next(self) -> int:
        """The offset of the half queue's next record."""
        return self._half_next

    @property
    def untold(self) -> int:
        """The number of finished copies that no op record lists yet."""
        return len(self._without_op)

    def first(self) -> Half | None:
        """The undecided copy with the lowest offset, before which a fold cannot begin."""
        return next(iter(self._pending.values()), None)

    def get(self, offset: int) -> Half | None:
        """The undecided copy at an offset."""
        return self._pending.get(offset)

    def newest(self, root: int) -> Half | None:
        """The newest copy of an undecided transaction; None for others."""
        return self._pending.get(self._newest.get(root, root))

    def since(self, offset: int) -> list[Half]:
        """Undecided copies from an offset on."""
        # From the end backwards: that costs a step for each new copy, not for each undecided one.
        found: list[Half] = []
        for half in reversed(self._pending.values()):
            if half.offset < offset:
                break
            found.append(half)
        return found[::-1]

    def outcome(self, root: int) -> EndState | None:
        """How a transaction ended; None if it has not, or if that is forgotten."""
        return self._outcomes.get(root)

    def add(self, half: Half, *, replaces: int | None = None) -> None:
        """Adds the next record of the half queue.

        Args:
            replaces: the root of the transaction, if the record itself does not contain it.
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

    def settle(self, root: int, outcome: EndState) -> None:
        """Records a transaction's outcome; its newest copy waits for an op record."""
        half = self.newest(root)
        if half is not None:
            self._newest.pop(half.root, None)
            self._drop(half.offset)
        self._outcomes[root] = outcome
        self._outcomes.move_to_end(root)
        if len(self._outcomes) > self._outcomes_max:
            self._outcomes.popitem(last=False)

    def discard(self, offset: int) -> None:
        """Drops a copy whose record cannot be read; it counts as finished."""
        half = self._pending.get(offset)
        if half is not None:
            self._newest.pop(half.root, None)
            self._drop(offset)

    def _drop(self, offset: int) -> None:
        self._count(self._pending.pop(offset).topic, -1)
        self._without_op.append(offset)

    def _count(self, topic: str, change: int) -> None:
        self.changes += 1
        count = self.by_topic.get(topic, 0) + change
        if count:
            self.by_topic[topic] = count
        else:
            self.by_topic.pop(topic, None)

    def next_op_copies(self, count_max: int) -> list[int]:
        """The next copies for an op record; `apply_op` removes them once it is stored."""
        return self._without_op[:count_max]

    def apply_op(self, op_offset: int, offsets: Iterable[int]) -> None:
        """Applies the next record of the op queue."""
        # A copy may have been dropped by `settle` already, in this process, or be found here for
        # the first time, in a fold. Both ways lead to the same table.
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
        if self._without_op:
            self._without_op = [offset for offset in self._without_op if offset not in gone]
        self._op_records.append((op_offset, max(gone, default=-1)))

    def positions(self) -> LedgerStart:
        """Where a fold may begin that finds all halves that are undecided now."""
        # A half must stay in the fold while it is undecided, or finished without an op record. An
        # op record must stay while it lists a copy from there on, or the fold would revive it.
        # The oldest op records are dropped from the front only: that costs one step for each, and
        # one that is kept a little too long does no harm.
        first = min(self._first_pending(), min(self._without_op, default=self._half_next))
        while self._op_records and self._op_records[0][1] < first:
            self._op_records.popleft()
        return LedgerStart(first, self._op_records[0][0] if self._op_records else self._op_next)

    def _first_pending(self) -> int:
        return next(iter(self._pending), self._half_next)

    def validate(self) -> None:
        """Asserts the invariants between two calls."""
        offsets = list(self._pending)
        assert offsets == sorted(offsets)
        assert all(offset == half.offset for offset, half in self._pending.items())
        roots = [half.root for half in self._pending.values()]
        assert len(roots) == len(set(roots))
        for root, offset in self._newest.items():
            assert self._pending[offset].root == root
        assert sum(self.by_topic.values()) == len(self._pending)
        assert all(count > 0 for count in self.by_topic.values())
        assert not set(self._without_op) & set(self._pending)
        assert len(self._outcomes) <= self._outcomes_max
        assert all(offset < self._half_next for offset in offsets)
