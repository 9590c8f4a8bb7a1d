"""The ledger against a plain model, through random lives, and its refolding from the queues."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sprocket.transaction.half import Half
from sprocket.transaction.ledger import EndState, Ledger, LedgerStart


def half(offset: int, root: int | None = None, checks: int = 0) -> Half:
    return Half(offset, offset if root is None else root, 100 * offset, 0, 0, checks=checks)


def test_a_copy_takes_the_place_of_what_it_was_made_of() -> None:
    ledger = Ledger()
    ledger.add(half(0))
    ledger.add(half(1, root=0, checks=1))
    assert ledger.newest(0) == half(1, root=0, checks=1)
    assert (0 in ledger, 1 in ledger, len(ledger)) == (False, True, 1)
    assert ledger.next_op_copies(9) == [0]
    ledger.settle(0, EndState.COMMITTED)
    assert ledger.newest(0) is None
    assert ledger.outcome(0) is EndState.COMMITTED
    assert ledger.next_op_copies(9) == [0, 1]


def test_positions_wait_for_the_word_on_what_ended() -> None:
    ledger = Ledger()
    for offset in range(3):
        ledger.add(half(offset))
    ledger.settle(0, EndState.COMMITTED)
    ledger.settle(2, EndState.ROLLED_BACK)
    assert ledger.positions() == LedgerStart(0, 0)
    ledger.apply_op(0, ledger.next_op_copies(9))
    assert ledger.positions() == LedgerStart(1, 0)
    ledger.settle(1, EndState.PARKED)
    ledger.apply_op(1, ledger.next_op_copies(9))
    assert ledger.positions() == LedgerStart(3, 2)


def test_a_copy_that_does_not_name_its_transaction_can_be_placed() -> None:
    ledger = Ledger()
    ledger.add(half(0))
    ledger.add(half(1, checks=1), replaces=0)
    assert len(ledger) == 1
    ledger.settle(1, EndState.COMMITTED)
    assert len(ledger) == 0


def test_only_so_many_ends_are_remembered() -> None:
    ledger = Ledger(outcomes_max=2)
    for offset in range(3):
        ledger.add(half(offset))
        ledger.settle(offset, EndState.COMMITTED)
    assert [ledger.outcome(offset) for offset in range(3)] == [
        None, EndState.COMMITTED, EndState.COMMITTED,
    ]  # fmt: skip


def test_what_cannot_be_read_is_done_with() -> None:
    ledger = Ledger(half_at=5)
    ledger.add(half(5))
    ledger.discard(5)
    ledger.discard(5)
    assert (len(ledger), ledger.next_op_copies(9), ledger.outcome(5)) == (0, [5], None)


class Lives(RuleBasedStateMachine):
    """The queues are lists; the model is a set of open transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.halves: list[Half] = []
        self.words: list[list[int]] = []
        self.open: dict[int, int] = {}
        self.ended: dict[int, EndState] = {}
        self.ledger = Ledger(outcomes_max=1000)
        self.saved = LedgerStart(0, 0)

    @rule()
    def prepare(self) -> None:
        offset = len(self.halves)
        self.open[offset] = offset
        self._append(half(offset))

    def _append(self, new: Half) -> None:
        self.halves.append(new)
        self.ledger.add(new)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        root = data.draw(st.sampled_from(sorted(self.open)))
        old = self.ledger.newest(root)
        assert old is not None
        self.open[root] = len(self.halves)
        self._append(half(len(self.halves), root, old.checks + 1))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=st.sampled_from(EndState))
    def end(self, data: st.DataObject, outcome: EndState) -> None:
        root = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[root]
        self.ended[root] = outcome
        self.ledger.settle(root, outcome)

    @precondition(lambda self: self.ledger.untold)
    @rule(count=st.integers(1, 3))
    def tell(self, count: int) -> None:
        word = self.ledger.next_op_copies(count)
        self.words.append(word)
        self.ledger.apply_op(len(self.words) - 1, word)

    @rule()
    def save(self) -> None:
        self.saved = self.ledger.positions()

    @rule()
    def restart(self) -> None:
        """Folds anew from what was saved; what was not told yet is open again."""
        while self.ledger.untold:
            self.tell(2)
        self.ledger.begin(self.saved)
        for new in self.halves[self.saved.half :]:
            self.ledger.add(new)
        for at, word in enumerate(self.words[self.saved.op :], self.saved.op):
            self.ledger.apply_op(at, word)
        self.ended.clear()

    @invariant()
    def agrees(self) -> None:
        self.ledger.validate()
        assert len(self.ledger) == len(self.open)
        for root, offset in self.open.items():
            newest = self.ledger.newest(root)
            assert newest is not None
            assert (newest.offset, newest.root) == (offset, root)
        for root, outcome in self.ended.items():
            assert self.ledger.outcome(root) is outcome
        first = self.ledger.first()
        assert (first.offset if first else None) == min(self.open.values(), default=None)

    @invariant()
    def positions_leave_nothing_open_behind(self) -> None:
        at = self.ledger.positions()
        assert all(offset >= at.half for offset in self.open.values())
        known = {offset for word in self.words[at.op :] for offset in word}
        told = {offset for word in self.words for offset in word if offset >= at.half}
        assert told <= known


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
