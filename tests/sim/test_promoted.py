"""Slaves that become masters by hand: nothing acknowledged or due is lost, and no position."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sprocket.broker.members.state_copy import StateCopy
from sprocket.broker.tables.changes import OFFSETS, WHOLE, ChangeJournal
from sprocket.delay.levels import deliver
from sprocket.delay.levels.schedule import ScheduleProgress
from sprocket.delay.timers.delivery_history import DeliveryHistory
from sprocket.message.record import Record
from sprocket.testing.plays import play
from sprocket.testing.promoted import PROMOTED
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", PROMOTED)
def test_a_slave_goes_on_where_its_master_was(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).delivered > 0


def sends_no_offsets_after_the_first(patch: pytest.MonkeyPatch) -> None:
    right = ChangeJournal.record

    def record(self: ChangeJournal, table: str, name: str, part: int = WHOLE) -> None:
        if table != OFFSETS:
            right(self, table, name, part)

    patch.setattr(ChangeJournal, "record", record)


def applies_what_the_log_does_not_have_yet(patch: pytest.MonkeyPatch) -> None:
    async def has_log(self: StateCopy, end: int, address: str) -> bool:
        return True

    patch.setattr(StateCopy, "_has_log", has_log)


def counts_one_more_as_delivered(patch: pytest.MonkeyPatch) -> None:
    def copy(self: ScheduleProgress, by_level: Mapping[int, int], log_offset: int | None) -> None:
        self._next = {level: offset + 1 for level, offset in by_level.items()}
        self.is_changed = True

    patch.setattr(ScheduleProgress, "copy", copy)


def forgets_what_was_delivered(patch: pytest.MonkeyPatch) -> None:
    def apply(self: DeliveryHistory, record: Record) -> None:
        return

    patch.setattr(DeliveryHistory, "apply", apply)
    patch.setattr(deliver, "delivered_since", lambda store, log_offset: {})


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (sends_no_offsets_after_the_first, "promotion", "is at .*, and was at"),
        (applies_what_the_log_does_not_have_yet, "promotion-lag", "beyond its messages|never came"),
        (counts_one_more_as_delivered, "promotion", "never came"),
        (forgets_what_was_delivered, "promotion", "was delivered more than once"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)
