"""Staged batches through bad weather, over many seeds: each transaction is seen once, and whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sprocket.broker.sending.publication import Publication
from sprocket.protocol.bodies.staged import AttemptsElsewhere
from sprocket.testing.plays import play
from sprocket.testing.staged import STAGED, _Driver
from sprocket.transaction.staged import StagedDecision
from sprocket.transaction.staged_ledger import StagedLedger
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 4


@pytest.mark.parametrize("name", STAGED)
def test_each_transaction_is_seen_once_whatever_the_weather(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).delivered > 0


def begins_a_publication_anew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publication, "_find_published", lambda self, log_offset: None)


def forgets_decisions(patch: pytest.MonkeyPatch) -> None:
    def earlier(
        self: StagedLedger, name: str, owner: str, batch: int, *, is_first: bool
    ) -> StagedDecision | None:
        return None

    patch.setattr(StagedLedger, "earlier", earlier)


def does_not_continue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StagedLedger, "unfinished", lambda self: iter(()))


def forgets_what_others_publish(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publication, "elsewhere", lambda self, name: [])


def publishes_its_own_rows_elsewhere(patch: pytest.MonkeyPatch) -> None:
    async def publish(self: _Driver, batch_id: int, shares: Sequence[AttemptsElsewhere]) -> None:
        for each in reversed(shares):
            await self._publish_at(batch_id, each)

    patch.setattr(_Driver, "_publish", publish)


@pytest.mark.parametrize(
    ("plant", "name", "told", "seed"),
    [
        (begins_a_publication_anew, "staged-power", "seen more than once", 23),
        (forgets_decisions, "staged", "seen more than once|transactions are made", 1),
        (does_not_continue, "staged-power", "never seen|transactions are made", 23),
        (forgets_what_others_publish, "staged-brokers", "never seen", 1),
        (publishes_its_own_rows_elsewhere, "staged-brokers", "more than once|several attempts", 1),
    ],
)
def test_a_planted_fault_is_found(
    plant: Plant, name: str, told: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch, seed=seed)
