"""Pop consumption through kills, losses of power, bad networks, clocks and disks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sprocket.broker.members.copied_tables import CopiedTables
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.pop.replay import PopReplay
from sprocket.broker.pop.revival import Revival
from sprocket.broker.pop.revive_window import ReviveWindow
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.message.record import Draft
from sprocket.protocol.bodies.pop import AckRecord
from sprocket.testing.plays import play
from sprocket.testing.popped import POPPED
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 1


@pytest.mark.parametrize("name", POPPED)
def test_what_is_popped_comes_again_after_its_time_or_is_done(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).delivered > 0


def test_what_was_done_behind_a_message_hides_none_before_it() -> None:
    """Popped again one by one, the first was done, and the offset went past the second."""
    assert play("pops-order", 2).delivered > 0


def starts_without_the_log(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: PopReplay, *place: object) -> None:
        return None

    patch.setattr(PopReplay, "_apply_from", nothing)


def forgets_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReviveWindow, "_acknowledge", lambda self, key, offsets: None)


def forgets_what_it_gave_back(patch: pytest.MonkeyPatch) -> None:
    def give_back(
        self: PopJournal, drafts: Sequence[Draft], record: AckRecord, revive_queue: int
    ) -> None:
        self._ingress.accept_due_together(drafts)

    patch.setattr(PopJournal, "give_back", give_back)


def gives_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Revival, "_give_back", lambda self, queue, pop, offset, record: None)


def gives_back_early(patch: pytest.MonkeyPatch) -> None:
    right = Revival._until
    patch.setattr(Revival, "_until", lambda self, timers: right(self, timers) + 1500)


def locks_no_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderTable, "blocked_until", lambda self, *place, **named: None)


def forgets_what_is_done_in_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderTable, "done_offsets", lambda self, *place: frozenset())


def leaves_pairs_unfinished(patch: pytest.MonkeyPatch) -> None:
    """What came again as the last thing before a loss of power comes again once more."""
    patch.setattr(Revival, "_is_there", lambda self, draft: False)


def tells_slaves_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CopiedTables, "_apply_popped", lambda self, state: None)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (starts_without_the_log, "pops-kills", "came again|came .* early"),
        (forgets_acknowledgements, "pops", "was acknowledged and came again"),
        (forgets_what_it_gave_back, "pops-kills", "came again|came .* early"),
        (starts_without_the_log, "pops-order", "came again|came .* early|was in flight"),
        (starts_without_the_log, "pops-failover", "came again|came .* early"),
        (tells_slaves_nothing, "pops-order-failover", "came again|came .* early|was in flight"),
        (gives_nothing_back, "pops", "was stored and never done"),
        (gives_back_early, "pops", "came again|came .* early"),
        (locks_no_queue, "pops-order", "was in flight|came .* early"),
        (forgets_what_is_done_in_order, "pops-order", "was acknowledged and came again"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)


def test_a_pair_that_is_left_unfinished_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few histories show it: the power must be lost between two records."""
    told = "came again|came .* early"
    assert_found(leaves_pairs_unfinished, "pops-power", told, monkeypatch, seed=110)
