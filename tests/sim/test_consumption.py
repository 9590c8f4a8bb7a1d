"""Hundreds of histories of consumption, and proof that broken promises are found.

A failure prints the command that plays it again. `make sim SEEDS=1..2000` plays more.
"""

from __future__ import annotations

import logging

import pytest

from sprocket.testing.consumption import CONSUMPTION, play

SEEDS_PER_TEST = 10


@pytest.fixture(autouse=True)
def _quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    """What clients and brokers log about bad weather is no news here, and costs time."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("name", CONSUMPTION)
def test_all_promises_of_consumption_hold(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        outcome = play(name, seed)
        assert outcome.delivered >= outcome.acknowledged > 0
