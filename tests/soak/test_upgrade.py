"""The parts of the rolling upgrade that need no servers."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from sprocket.demo.cluster.observer import Setback
from tests.soak.upgrade import ROOT, RollingUpgrade, checked_out, name_of

pytestmark = pytest.mark.skipif(
    subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode != 0,
    reason="not in a clone",
)


def test_the_code_of_a_commit_is_laid_out(tmp_path: Path) -> None:
    source = checked_out("HEAD", tmp_path)
    assert (source / "sprocket" / "__init__.py").exists()
    assert not (tmp_path / "tests").exists()
    assert " of 20" in name_of("HEAD")


class FakeServer:
    """Writes down what happens to it."""

    def __init__(self, name: str, events: list[str]) -> None:
        self.address = self.name = name
        self._events = events

    async def stop(self) -> None:
        self._events.append(f"stop {self.name}")

    async def start(self) -> None:
        self._events.append(f"start {self.name}")


class FakeServers:
    def __init__(self, events: list[str]) -> None:
        self.nameservers = [FakeServer(name, events) for name in ("n1", "n2")]
        self.brokers = [FakeServer(name, events) for name in ("b1", "b2", "b3")]
        self._events = events

    def code(self, server: FakeServer, source: Path) -> None:
        self._events.append(f"{server.name} gets {source}")


class FakeLoad:
    failed = 0

    def __init__(self, accepts: bool) -> None:
        self._accepts = accepts

    async def accepted_after(self, moment: float, seconds: float) -> bool:
        return self._accepts

    def longest_pause(self, begin: float, end: float) -> float:
        return 0.5


class FakeObserver:
    setback = Setback()

    async def master(self) -> str:
        return "b2"

    async def in_sync(self, count: int, seconds: float) -> bool:
        return True


def steps(monkeypatch: pytest.MonkeyPatch, *, accepts: bool) -> tuple[RollingUpgrade, list[str]]:
    monkeypatch.setattr("tests.soak.upgrade._BETWEEN", 0.0)
    events: list[str] = []
    upgrade = RollingUpgrade(FakeServers(events), FakeLoad(accepts), FakeObserver())  # type: ignore[arg-type]
    asyncio.run(upgrade.run(Path("new"), "to the present code"))
    return upgrade, events


def test_the_master_comes_last_and_each_is_stopped_before_it_gets_other_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upgrade, events = steps(monkeypatch, accepts=True)
    order = ["n1", "n2", "b1", "b3", "b2"]
    assert events == [
        event for name in order for event in (f"stop {name}", f"{name} gets new", f"start {name}")
    ]
    assert [each.pause for each in upgrade.costs] == [0.5] * 5
    assert not upgrade.wrong


def test_it_ends_at_the_first_step_after_which_no_send_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upgrade, events = steps(monkeypatch, accepts=False)
    assert upgrade.wrong == ["no send is accepted after: name server to the present code"]
    assert len(events) == 3
