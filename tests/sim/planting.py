"""Faults that are planted, one by one, to prove that histories find them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprocket.testing.invariants import Violation
from sprocket.testing.plays import play

#: Breaks a promise for as long as the patch holds.
Plant = Callable[[pytest.MonkeyPatch], None]

_SEED_LAST = 40


def assert_found(
    plant: Plant, name: str, told: str, patch: pytest.MonkeyPatch, *, seed: int = 1
) -> None:
    """Some history of a scenario shows the fault, and says in these words what is broken.

    Args:
        seed: the first one to play; one that is known to show the fault soon saves time.
    """
    plant(patch)
    with pytest.raises(Violation, match=rf"(?s)({told}).*SCENARIO={name}"):
        _play_from(seed, name)


def _play_from(seed: int, name: str) -> None:
    for each in range(seed, max(seed, _SEED_LAST) + 1):
        play(name, each)
