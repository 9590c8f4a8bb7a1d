"""Simulated histories of every kind. A failure prints the command that plays it again.

`make sim SEEDS=1..2000` plays more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.testing.plays import play
from sprocket.testing.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS_PER_TEST = 3


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_promises_hold(name: str) -> None:
    sent = acknowledged = 0
    for seed in range(1, 1 + SEEDS_PER_TEST):
        outcome = play(name, seed)
        sent += outcome.sent
        acknowledged += outcome.acknowledged
    assert acknowledged > sent / 4, "else hardly anything is put to the test"


def test_everything_is_acknowledged_and_delivered_once_in_fair_weather() -> None:
    outcome = play("fair", 77)
    assert outcome.sent == outcome.acknowledged == outcome.delivered


def test_a_history_is_the_same_whatever_the_hash_seed() -> None:
    def told(hash_seed: str) -> str:
        command = [sys.executable, "-m", "sprocket.testing", "--seed", "10", "--scenario", "storm"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split(" in ")[0]

    histories = {told(hash_seed) for hash_seed in ("0", "12345")}
    assert len(histories) == 1
    assert "storm 10: history" in histories.pop()


def test_a_history_is_the_same_twice_in_one_process_and_another_with_another_seed() -> None:
    assert play("storm", 3).history == play("storm", 3).history
    assert play("storm", 3).history != play("storm", 4).history


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param("ordered-power", 6, id="leases-outlive-a-broker-that-lost-its-power"),
        pytest.param(
            "ordered-power", 7, id="a-dead-letter-that-cannot-be-stored-is-no-further-try"
        ),
        pytest.param("ordered-power", 30043, id="what-is-given-back-is-kept-like-what-is-sent"),
        pytest.param("tempest", 30039, id="a-topic-is-saved-when-its-maker-is-told"),
        pytest.param("delayed", 12, id="what-was-delivered-before-a-kill-does-not-come-again"),
        pytest.param("delayed", 8, id="nor-does-what-waited-in-the-first-record-of-the-log"),
        pytest.param("dead-letters", 17, id="nor-do-returned-messages"),
        pytest.param("tempest", 196, id="a-reset-is-not-lost-on-a-pull-that-was-given-up"),
        pytest.param("resets", 136, id="nor-told-to-a-connection-that-is-gone"),
        pytest.param("resets", 137, id="that-one-member-heard-does-not-speak-for-another"),
        pytest.param("tempest", 145, id="a-group-moved-forwards-goes-on-behind-what-it-passed"),
        pytest.param("transactions-power", 60137, id="what-was-sent-twice-is-parked-once"),
    ],
)
def test_what_was_broken_once_holds(name: str, seed: int) -> None:
    play(name, seed)
