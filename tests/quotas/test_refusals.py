"""Refusals are counted, said once, and their end is said too."""

from __future__ import annotations

import logging

import pytest

from sprocket.quotas.meters import Meter, MeterTable
from sprocket.quotas.refusals import Refusals
from sprocket.quotas.rules import QuotaKind, QuotaRules


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def meter_of(text: str) -> Meter:
    """The meter of the name in a rule."""
    kind, name, _ = text.split()
    meter = MeterTable(QuotaRules.parse([text])).of(QuotaKind(kind), name, 0.0)
    assert meter is not None
    return meter


def test_a_flood_is_said_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = Hand()
    refusals, meter = Refusals(clock), meter_of("user alice requests=10")
    meter.buckets["requests"].spend(10, 0.0)
    for _ in range(1_000):
        error = refusals.refusal(meter, "requests")
        refusals.look()
    assert "user alice is over its limit of 10 requests a second" in error.remark
    assert len(caplog.records) == 1
    clock.now = 6.0
    refusals.look()
    refusals.look()
    assert [each.getMessage() for each in caplog.records][1:] == [
        "user alice is within its limit of requests a second again, after 6 s"
    ]


def test_the_figures_say_what_was_refused_and_who_is_over_now() -> None:
    clock = Hand()
    refusals, meter = Refusals(clock), meter_of("ip 10.0.0.1 new_topics=20")
    refusals.look()
    meter.buckets["new_topics"].spend(20, 0.0)
    for _ in range(3):
        assert "20 new topics an hour" in refusals.refusal(meter, "new_topics").remark
    group = meter_of("group g held=1")
    group.held = 1
    refusals.delay(group, "held")
    assert refusals.table() == {
        "quotaRefused.ip.new_topics": "3",
        "quotaDelayed.group.held": "1",
        "quotaOver.ip.new_topics.10.0.0.1": "3",
        "quotaOver.group.held.g": "1",
    }
    clock.now, group.held = 3600.0, 0
    assert refusals.table() == {
        "quotaRefused.ip.new_topics": "3",
        "quotaDelayed.group.held": "1",
    }
