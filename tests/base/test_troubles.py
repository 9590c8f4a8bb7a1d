"""A trouble is told when it begins, rarely after, and when it ends."""

from __future__ import annotations

import logging

import pytest

from sprocket.base.troubles import TROUBLES_MAX, Troubles

logger = logging.getLogger("troubles")


class Told:
    """Troubles with a clock in hand."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 0.0
        self.troubles = Troubles(lambda: self.now, logger)
        self._caplog = caplog
        caplog.set_level(logging.INFO)

    @property
    def lines(self) -> list[str]:
        return [each.getMessage() for each in self._caplog.records]


def test_an_hour_of_failures_is_a_handful_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    for second in range(3_600):
        told.now = second
        told.troubles.failed("a", "no answer", OSError("refused"))
    told.troubles.ended("a", "answers again")
    told.troubles.ended("a", "answers again")
    assert told.lines == [
        "no answer: refused",
        *(f"no answer for {second} s: refused" for second in (60, 180, 420, 900, 1860)),
        "answers again, after 3599 s",
    ]
    assert not told.troubles.is_any


def test_another_trouble_of_the_same_name_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.troubles.failed("a", "this")
    told.troubles.failed("a", "that", is_new=True)
    assert told.troubles.reported("a") == "that"
    told.troubles.forget("a")
    assert told.troubles.reported("a") is None
    assert told.lines == ["this", "that"]


def test_what_was_never_wrong_does_not_end(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.troubles.ended("a", "well")
    assert not told.lines


def test_there_is_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    for number in range(TROUBLES_MAX + 5):
        told.troubles.failed(f"{number}", "bad")
    assert len(told.lines) == TROUBLES_MAX
