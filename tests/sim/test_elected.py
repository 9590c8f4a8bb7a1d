"""Groups that elect their master, through kills, bad links, pauses, losses of power, bad disks."""

from __future__ import annotations

import pytest

from sprocket.testing.elected import ELECTED
from sprocket.testing.plays import play

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", ELECTED)
def test_nothing_acknowledged_is_lost_and_nothing_read_is_taken_away(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).acknowledged > 0
