"""Transactions through bad weather, over many seeds: unseen before, seen once after, none left."""

from __future__ import annotations

import pytest

from sprocket.testing.plays import play
from sprocket.testing.transacted import TRANSACTED
from sprocket.transaction import check_loop
from sprocket.transaction.check import CheckRules, due_ms
from sprocket.transaction.check_loop import CheckLoop
from sprocket.transaction.half import Half, StoredHalf
from sprocket.transaction.ledger import EndState, Ledger
from sprocket.transaction.settle import Settlement
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 5


@pytest.mark.parametrize("name", TRANSACTED)
def test_transactions_end_as_their_senders_say_whatever_the_weather(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        outcome = play(name, seed)
        assert outcome.acknowledged > outcome.delivered > 0


def test_a_commit_that_a_full_disk_refused_is_not_parked() -> None:
    """It was, when the disk was full for longer than the questions lasted."""
    assert play("transactions-storm", 1).acknowledged > 0


def checks_when_the_clock_says_so(patch: pytest.MonkeyPatch) -> None:
    def wait_ms(half: Half, rules: CheckRules, *, now_ms: int) -> int:
        return max(0, due_ms(half, rules) - now_ms)

    patch.setattr(check_loop, "wait_ms", wait_ms)


def forgets_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Settlement, "is_committed", lambda self, found: False)
    patch.setattr(Settlement, "write_op_records", lambda self: None)


def gives_up_at_once(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.settle

    def settle(self: Ledger, root: int, outcome: EndState) -> None:
        if outcome is not EndState.PARKED:
            right(self, root, outcome)

    patch.setattr(Ledger, "settle", settle)


def commits_whatever_is_asked(patch: pytest.MonkeyPatch) -> None:
    def look(self: CheckLoop, half: object, found: StoredHalf, rules: object) -> None:
        self._settlement.commit(found)

    patch.setattr(CheckLoop, "_check", look)


def forgets_refused_commits(patch: pytest.MonkeyPatch) -> None:
    right = Settlement.__init__

    class Nothing(set[int]):
        def add(self, root: int) -> None:
            pass

    def init(self: Settlement, *parts: object, **named: object) -> None:
        right(self, *parts, **named)  # type: ignore[arg-type]
        self._refused = Nothing()

    patch.setattr(Settlement, "__init__", init)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (forgets_what_has_ended, "transactions-restarts", "seen more than once|never ended"),
        (checks_when_the_clock_says_so, "transactions-clocks", "never ended"),
        (gives_up_at_once, "transactions", "is parked [2-9]|never ended"),
        (commits_whatever_is_asked, "transactions", "was seen before its commit"),
        (forgets_refused_commits, "transactions-storm", "was committed and never seen"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)
