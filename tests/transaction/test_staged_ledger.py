"""The ledger of staged batches through random lives, and its refolding from the two queues."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from sprocket.base.errors import InvalidParameter, NoPermission, ReplyError, SystemBusy
from sprocket.transaction import staged_ledger
from sprocket.transaction.staged import StagedDecision, StagedHead
from sprocket.transaction.staged_ledger import RENEW_MS, STAGED_MS_MAX, StagedLedger

KEPT_MS = 2 * STAGED_MS_MAX


def head(batch: int = 0, attempt: str = "a", number: int = 0, **more: object) -> StagedHead:
    named = {"writer": "w", "owner": "", "topic": "T", "queue": 0, "messages": 10, **more}
    return StagedHead(batch=batch, attempt=attempt, number=number, **named)  # type: ignore[arg-type]


def decision(batch: int, attempts: list[tuple[str, int]], **more: object) -> StagedDecision:
    named = {
        "writer": "w", "owner": "", "messages": 10, "is_finished": False, "at_ms": 0,
        "keep_ms": KEPT_MS, "staged_from": 0, "decided_from": 0, **more,
    }  # fmt: skip
    return StagedDecision(batch=batch, attempts=attempts, **named)  # type: ignore[arg-type]


class Life(RuleBasedStateMachine):
    """One broker's two queues, and the ledger that is made from them as they grow."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = StagedLedger()
        self.now_ms = 0
        self.log_end = 0
        self.staged: list[tuple[StagedHead, int, int]] = []
        self.decided: list[tuple[StagedDecision, int, int]] = []

    @rule(
        writer=st.sampled_from("vw"), batch=st.integers(0, 3), attempt=st.sampled_from("abc"),
        number=st.integers(0, 2),
    )  # fmt: skip
    def stage(self, writer: str, batch: int, attempt: str, number: int) -> None:
        made = head(batch, attempt, number, writer=writer)
        try:
            if self.ledger.is_staged(made):
                return
        except ReplyError:
            return
        offset, self.log_end = len(self.staged), self.log_end + 1
        self.ledger.apply_staged(
            made, offset=offset, log_offset=self.log_end, stored_ms=self.now_ms
        )
        self.staged.append((made, self.log_end, self.now_ms))

    @rule(
        writer=st.sampled_from("vw"), batch=st.integers(0, 3), names=st.sets(st.sampled_from("abc"))
    )
    def decide(self, writer: str, batch: int, names: set[str]) -> None:
        try:
            if self.ledger.earlier(writer, "", batch, is_first=True) is not None:
                return
        except ReplyError:
            return
        known = self.ledger.writers.get(writer)
        attempts = [] if known is None else [
            (name, len(known.attempts[name].batches))
            for name in sorted(names & known.attempts.keys())
            if known.attempts[name].batch == batch
        ]  # fmt: skip
        self._store(decision(batch, attempts, writer=writer, at_ms=self.now_ms))
        if known is not None and attempts:
            assert {name for name, _ in attempts} <= known.attempts.keys()

    @rule()
    def finish(self) -> None:
        for writer in list(self.ledger.unfinished()):
            assert writer.last is not None
            self._store(replace(writer.last, attempts=[], is_finished=True))

    @rule(ms=st.sampled_from([1, RENEW_MS, STAGED_MS_MAX, KEPT_MS]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.ledger.drop_old(self.now_ms)
        for writer in self.ledger.to_renew(self.now_ms):
            assert writer.last is not None
            self._store(writer.last)

    def _store(self, made: StagedDecision) -> None:
        staged_from, decided_from = self.ledger.positions()
        made = replace(made, staged_from=staged_from, decided_from=decided_from)
        offset, self.log_end = len(self.decided), self.log_end + 1
        self.ledger.apply_decision(
            made, offset=offset, log_offset=self.log_end, stored_ms=self.now_ms
        )
        self.decided.append((made, self.log_end, self.now_ms))

    @invariant()
    def a_start_finds_the_same(self) -> None:
        self.ledger.validate()
        other = StagedLedger()
        newest = self.decided[-1][0] if self.decided else decision(0, [])
        for offset in range(newest.staged_from, len(self.staged)):
            made, log_offset, stored_ms = self.staged[offset]
            other.apply_staged(made, offset=offset, log_offset=log_offset, stored_ms=stored_ms)
        for offset in range(newest.decided_from, len(self.decided)):
            decided, log_offset, stored_ms = self.decided[offset]
            other.apply_decision(decided, offset=offset, log_offset=log_offset, stored_ms=stored_ms)
        other.drop_old(self.now_ms)
        other.validate()
        self.ledger.drop_old(self.now_ms)
        assert self._content(other) == self._content(self.ledger)

    def _content(self, ledger: StagedLedger) -> dict[str, object]:
        return {
            name: (writer.last, writer.last and writer.last_at, writer.attempts)
            for name, writer in ledger.writers.items()
        }


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_writer_is_of_one_user() -> None:
    ledger = StagedLedger()
    ledger.apply_staged(head(owner="ann"), offset=0, log_offset=0, stored_ms=0)
    assert ledger.is_staged(head(owner="ann"))
    with pytest.raises(NoPermission, match="belongs to another user"):
        ledger.is_staged(head(owner="bob"))
    with pytest.raises(NoPermission, match="belongs to another user"):
        ledger.earlier("w", "bob", 0, is_first=True)


def test_a_writer_goes_on_when_access_control_is_switched_on_and_off() -> None:
    ledger = StagedLedger()
    ledger.apply_decision(decision(1, [], is_finished=True), offset=0, log_offset=0, stored_ms=0)
    assert ledger.earlier("w", "ann", 2, is_first=False) is None
    signed = decision(2, [], is_finished=True, owner="ann")
    ledger.apply_decision(signed, offset=1, log_offset=100, stored_ms=0)
    with pytest.raises(NoPermission, match="belongs to another user"):
        ledger.earlier("w", "bob", 3, is_first=False)
    assert ledger.earlier("w", "", 3, is_first=False) is None


def test_no_user_takes_the_places_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_ledger, "WRITERS_OF_USER_MAX", 2)
    ledger = StagedLedger()
    for number in range(2):
        mine = head(writer=f"w{number}", owner="ann")
        ledger.apply_staged(mine, offset=number, log_offset=0, stored_ms=0)
    with pytest.raises(SystemBusy, match="user ann has 2 writers"):
        ledger.is_staged(head(writer="more", owner="ann"))
    with pytest.raises(SystemBusy, match="user ann has 2 writers"):
        ledger.earlier("more", "ann", 0, is_first=True)
    assert not ledger.is_staged(head(writer="w0", owner="ann", number=1))
    assert ledger.earlier("more", "bob", 0, is_first=True) is None


def test_only_so_much_is_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_ledger, "BATCHES_MAX", 2)
    monkeypatch.setattr(staged_ledger, "WRITERS_MAX", 1)
    ledger = StagedLedger()
    for number in range(2):
        assert not ledger.is_staged(head(number=number))
        ledger.apply_staged(head(number=number), offset=number, log_offset=0, stored_ms=0)
    with pytest.raises(SystemBusy, match="2 batches are staged"):
        ledger.is_staged(head(number=2))
    assert ledger.is_staged(head(number=1))
    for ask in (
        lambda: ledger.is_staged(head(writer="v")),
        lambda: ledger.earlier("v", "", 0, is_first=True),
    ):
        with pytest.raises(SystemBusy, match="1 writers"):
            ask()


def test_a_transaction_waits_for_the_one_before() -> None:
    ledger = StagedLedger()
    ledger.apply_decision(decision(1, []), offset=0, log_offset=0, stored_ms=0)
    with pytest.raises(SystemBusy, match="not finished yet"):
        ledger.earlier("w", "", 2, is_first=False)
    with pytest.raises(InvalidParameter, match="is over"):
        ledger.earlier("w", "", 0, is_first=True)


def test_another_broker_decides_only_for_a_writer_that_says_so() -> None:
    """What one broker does not know, another may have decided."""
    ledger = StagedLedger()
    last = decision(1, [], is_finished=True, decided_by="first")
    ledger.apply_decision(last, offset=0, log_offset=0, stored_ms=0)
    assert ledger.earlier("w", "", 1, is_first=True, decided_by="first") == last
    assert ledger.earlier("w", "", 2, is_first=True, decided_by="first") is None
    assert ledger.earlier("w", "", 2, is_first=True) is None
    for batch, is_first in ((1, True), (1, False), (2, False)):
        with pytest.raises(InvalidParameter, match="was decided by first"):
            ledger.earlier("w", "", batch, is_first=is_first)
