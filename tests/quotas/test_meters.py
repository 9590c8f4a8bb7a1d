"""Meters: bounded in number, and none is escaped by taking many names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.quotas.meters import OTHERS, MeterTable
from sprocket.quotas.rules import QuotaKind, QuotaRules

RULES = QuotaRules.parse(["client * requests=10/10", "topic t requests=5"])


def take(table: MeterTable, name: str, now: float) -> bool:
    """Takes one request of a client, if there is one."""
    meter = table.of(QuotaKind.CLIENT, name, now)
    assert meter is not None
    bucket = meter.buckets["requests"]
    if may := bucket.has(1, now):
        bucket.spend(1, now)
    return may


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(0.0, 0.5)), max_size=300))
def test_whatever_names_come_no_name_gets_more_than_its_rate(
    steps: list[tuple[int, float]],
) -> None:
    table, now, passed = MeterTable(RULES, meters_max=20), 0.0, dict[int, int]()
    for name, pause in steps:
        now += pause
        passed[name] = passed.get(name, 0) + take(table, str(name), now)
        table.validate()
        # Alone and, when there were too many names, as one of the others.
        assert passed[name] <= 2 * (10 * now + 10) + 1e-6


def test_names_beyond_the_most_share_one_meter() -> None:
    table = MeterTable(RULES, meters_max=10)
    for number in range(10):
        assert take(table, f"busy {number}", 0.0)
    passed = sum(take(table, f"new {number}", 0.0) for number in range(1_000))
    assert passed == 10
    assert len(table) == 11
    shared = table.of(QuotaKind.CLIENT, "another", 0.0)
    assert shared is not None
    assert shared.name == OTHERS


def test_idle_ones_make_place_for_new_ones() -> None:
    table = MeterTable(RULES, meters_max=10)
    for number in range(10):
        take(table, f"old {number}", 0.0)
    held = table.of(QuotaKind.CLIENT, "old 3", 0.0)
    assert held is not None
    held.held = 1
    for number in range(500):
        assert take(table, f"new {number}", 60.0 + 60.0 * number)
    assert len(table) <= 10
    assert table.of(QuotaKind.CLIENT, "old 3", 1e6) is held


def test_a_name_without_a_rule_costs_no_meter() -> None:
    table = MeterTable(RULES)
    assert table.of(QuotaKind.TOPIC, "other", 0.0) is None
    assert table.of(QuotaKind.GROUP, "g", 0.0) is None
    assert len(table) == 0


def test_other_rules_hold_at_once_and_counts_stay() -> None:
    table = MeterTable(RULES)
    meter = table.of(QuotaKind.CLIENT, "c", 0.0)
    assert meter is not None
    meter.held = 2
    table.change(QuotaRules.parse(["client c requests=1 held=2"]), 0.0)
    assert table.of(QuotaKind.CLIENT, "c", 0.0) is meter
    assert (meter.quota.held, meter.held, meter.buckets["requests"].rate) == (2, 2, 1)
    table.change(QuotaRules(), 0.0)
    assert meter.buckets == {}
    meter.held = 0
    table.change(QuotaRules(), 0.0)
    assert len(table) == 0
