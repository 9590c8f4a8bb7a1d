"""The command that plays histories: many at once, one told, one made smaller."""

from __future__ import annotations

import pytest

from sprocket.client.fetching.window import Window
from sprocket.testing.__main__ import main
from sprocket.testing.plays import PLAYS, play
from sprocket.testing.scenarios import SCENARIOS
from sprocket.testing.shrink import shrink


def test_all_scenarios_are_played_by_name() -> None:
    assert set(SCENARIOS) < set(PLAYS)
    assert play("fair", 1).acknowledged == 51


def test_many_seeds_are_played_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1..12", "--scenario", "fair"]) == 0
    told = capsys.readouterr().out
    assert "10 of 12 histories" in told
    assert told.split()[-4:] == ["fair", "12", "0", "100%"]


def test_one_history_is_told_event_by_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--scenario", "ordered", "--story"]) == 0
    told = capsys.readouterr().out
    assert "orderly-0    joins" in told
    assert "ordered 3: history" in told


def test_a_failing_history_is_made_smaller(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shrink("fair", 1) is None
    monkeypatch.setattr(Window, "committable", property(lambda window: window.next_offset))
    assert main(["--seed", "1", "--scenario", "dead-letters", "--shrink"]) == 1
    told = capsys.readouterr().out
    assert "neither finished nor given back" in told
    assert 0 < told.count(" sends ") < 30
