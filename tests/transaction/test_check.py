"""When producers are asked, who, and when it ends."""

from __future__ import annotations

import pytest

from sprocket.transaction.check import CheckRules, CheckSchedule, Verdict, choose, due_ms, judge
from sprocket.transaction.half import Half

RULES = CheckRules(timeout_ms=6_000, interval_ms=30_000, checks_max=15, age_ms_max=1_000_000)


def half(*, immunity_ms: int = -1, checks: int = 0, stored_ms: int = 0) -> Half:
    return Half(0, 0, 0, 0, stored_ms, immunity_ms, checks)


@pytest.mark.parametrize(
    ("immunity_ms", "due"), [(-1, 6_000), (0, 6_000), (5_999, 6_000), (600_000, 600_000)]
)
def test_the_longer_immunity_counts(immunity_ms: int, due: int) -> None:
    assert due_ms(half(immunity_ms=immunity_ms), RULES) == due


def test_after_a_check_the_interval_counts_from_the_copy() -> None:
    assert due_ms(half(immunity_ms=600_000, checks=1, stored_ms=7_000), RULES) == 37_000


@pytest.mark.parametrize(
    ("checks", "now_ms", "can_ask", "verdict"),
    [
        (0, 6_000, True, Verdict.ASK),
        (14, 6_000, True, Verdict.ASK),
        (15, 6_000, True, Verdict.PARK),
        (0, 6_000, False, Verdict.WAIT),
        (14, 1_006_000, False, Verdict.WAIT),
        (14, 1_006_001, False, Verdict.PARK),
        (0, 1_006_001, True, Verdict.ASK),
    ],
)
def test_only_questions_count_and_only_age_ends_what_nobody_can_answer(
    checks: int, now_ms: int, can_ask: bool, verdict: Verdict
) -> None:
    assert judge(half(checks=checks), RULES, now_ms=now_ms, can_ask=can_ask) is verdict


def test_members_take_turns_and_those_that_are_gone_are_left_out() -> None:
    members = ["a", "b", "c"]
    assert [choose(members, turn, lambda _: True) for turn in range(4)] == ["a", "b", "c", "a"]
    assert [choose(members, turn, lambda m: m != "b") for turn in range(3)] == ["a", "c", "c"]
    assert choose(members, 1, lambda _: False) is None
    assert choose([], 5, lambda _: True) is None


def test_the_agenda_gives_what_is_due_in_order_and_stays_small() -> None:
    agenda = CheckSchedule()
    for offset, due in enumerate((30, 10, 20)):
        agenda.put(due, offset)
    assert agenda.take(9) is None
    assert agenda.next_ms() == 10
    assert [agenda.take(25), agenda.take(25), agenda.take(25)] == [1, 2, None]
    for offset in range(5_000):
        agenda.put(1_000, offset)
    agenda.tidy(10, lambda offset: offset < 10)
    assert len(agenda) <= 11
