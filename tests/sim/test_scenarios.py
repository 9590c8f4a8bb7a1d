"""Hundreds of simulated histories. A failure prints the command that plays it again."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.client.window import Window
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.invariants import Violation
from sprocket.testing.scenarios import SCENARIOS, play

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS_PER_TEST = 20
#: Scenarios in which more can go wrong get more seeds.
TESTS = {"fair": 1, "storm": 6, "kills": 4, "retries": 4}


@pytest.fixture(autouse=True)
def _quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    """What clients and brokers log about bad weather is no news here, and costs time."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        (name, 1 + chunk * SEEDS_PER_TEST)
        for name in SCENARIOS
        for chunk in range(TESTS.get(name, 2))
    ],
)
def test_all_invariants_hold(name: str, first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        outcome = play(name, seed)
        assert outcome.sent == SCENARIOS[name].messages * SCENARIOS[name].producers
        assert outcome.delivered >= outcome.acknowledged > 0


def play_several(name: str) -> None:
    for seed in range(1, 6):
        play(name, seed)


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

    histories = {told(hash_seed) for hash_seed in ("0", "1", "12345")}
    assert len(histories) == 1
    assert "storm 10: history" in histories.pop()


def test_a_history_is_the_same_twice_in_one_process_and_another_with_another_seed() -> None:
    assert play("storm", 3).history == play("storm", 3).history
    assert play("storm", 3).history != play("storm", 4).history


def test_a_consumer_that_commits_what_it_has_not_consumed_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Window, "committable", property(lambda window: window.next_offset))
    with pytest.raises(Violation, match=r"(?s)neither finished nor given back.*--seed"):
        play_several("connections")


def test_a_broker_that_loses_what_it_acknowledged_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgets(disk: MemoryDisk) -> MemoryDisk:
        for name in disk.names("/data/commitlog"):
            disk.remove(f"/data/commitlog/{name}")
        return _after_kill(disk)

    _after_kill = MemoryDisk.after_kill
    monkeypatch.setattr(MemoryDisk, "after_kill", forgets)
    with pytest.raises(Violation, match=r"--scenario kills --seed"):
        play_several("kills")
