"""Groups that elect their master, through kills, bad links, pauses, losses of power, bad disks."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.broker.members.state_copy import StateCopy
from sprocket.replication.epochs import EpochList
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.testing.elected import ELECTED
from sprocket.testing.key_state import KeyState
from sprocket.testing.plays import play
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", ELECTED)
def test_nothing_acknowledged_is_lost_and_nothing_read_is_taken_away(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).acknowledged > 0


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("elected-links", 8),  # the set had shrunk to the master when it confirmed
        ("elected-five", 21),  # a slave asked for offsets on a connection that was forgotten
        ("elected-power", 2005),  # a slave showed the end of its log after a restart, and lost it
        ("elected-two", 2018),  # a member did so, led, and gave the offsets to other messages
        ("elected-two", 2020),
    ],
)
def test_a_history_that_once_failed_is_right(name: str, seed: int) -> None:
    assert play(name, seed).acknowledged > 0


def acknowledges_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InSyncCopies, "readable", lambda self, end: end)


def compares_nothing(patch: pytest.MonkeyPatch) -> None:
    """Keys that change whatever was seen before."""
    right = KeyState.__init__

    def make(self: KeyState, **settings: bool) -> None:
        right(self, **{**settings, "ignores_comparisons": True})

    patch.setattr(KeyState, "__init__", make)


def keeps_what_differs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EpochList, "common_end", lambda self, end, theirs, their_end: end)


def copies_no_offsets(patch: pytest.MonkeyPatch) -> None:
    async def run(self: StateCopy) -> None:
        await asyncio.Event().wait()

    patch.setattr(StateCopy, "run", run)


def shows_what_it_found_at_its_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConfirmedOffsets, "begin", lambda self, queues, log_end: self.advance())


@pytest.mark.parametrize(
    ("plant", "name", "seed", "told"),
    [
        (acknowledges_alone, "elected-kills", 1, "was acknowledged and is in"),
        (copies_no_offsets, "elected-kills", 1, "before the last master was lost"),
        (compares_nothing, "elected-five", 5, "both lead in epoch"),
        (shows_what_it_found_at_its_start, "elected-tail", 1, "where readers have seen"),
        (
            keeps_what_differs,
            "elected-power",
            1,
            "differs from another one|is not whole|where readers have seen",
        ),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, seed: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch, seed=seed)
