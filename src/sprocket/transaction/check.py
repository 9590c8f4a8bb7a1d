"""Decides when an undecided transaction is checked, whom to ask, and when to stop. Pure.

There is no check before the immunity of a half is over: the time that its sender asked for, or else
the broker's. After that a connected producer of the group is asked at intervals, each time another
one. After a number of checks without a reply the half is parked. A check that is impossible because
no producer is connected does not count; but a half that is too old is parked. Source:
TransactionalMessageServiceImpl.check, TransactionalMessageUtil.getImmunityTime of RocketMQ 5.x,
which counts a check before it knows whether a producer is connected.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from sprocket.transaction.half import Half

T = TypeVar("T")

#: The number of obsolete entries above which the schedule is cleaned.
_DEAD_MAX = 1024


class CheckRules(NamedTuple):
    """The broker's settings for checks.

    Attributes:
        timeout_ms: immunity of halves whose sender did not ask for more.
        interval_ms: pause between two checks of one half.
        checks_max: the number of checks after which it is parked.
        age_ms_max: the age at which it is parked even without a check.
    """

    timeout_ms: int = 6_000
    interval_ms: int = 30_000
    checks_max: int = 15
    age_ms_max: int = 72 * 3_600_000


class Verdict(Enum):
    """What to do with a half that is due."""

    ASK = "ask"
    WAIT = "wait"
    PARK = "park"


def due_ms(half: Half, rules: CheckRules) -> int:
    """When a half is due for its next check, ms since 1970 UTC."""
    if half.checks:
        return half.stored_ms + rules.interval_ms
    return half.began_ms + max(half.immunity_ms, rules.timeout_ms)


def wait_ms(half: Half, rules: CheckRules, *, now_ms: int) -> int:
    """How long to wait for a half's next check, ms, by a wall clock that says `now_ms`.

    It is never longer than the whole pause before the check: so a clock that was ahead when the
    half was stored, and was set back, does not delay the check by what it was ahead.
    """
    due = due_ms(half, rules)
    whole_ms = due - (half.stored_ms if half.checks else half.began_ms)
    return max(0, min(due - now_ms, whole_ms))


def judge(half: Half, rules: CheckRules, *, now_ms: int, can_ask: bool) -> Verdict:
    """Decides what to do with a half that is due.

    Args:
        now_ms: the time by which it is old, ms since 1970 UTC.
        can_ask: whether a producer of its group is connected.
    """
    if half.checks >= rules.checks_max:
        return Verdict.PARK
    if can_ask:
        return Verdict.ASK
    is_old = now_ms - due_ms(half._replace(checks=0), rules) > rules.age_ms_max
    return Verdict.PARK if is_old else Verdict.WAIT


def choose(members: Sequence[T], turn: int, is_there: Callable[[T], bool]) -> T | None:
    """The member whose turn it is, or else the next one that is connected."""
    for place in range(len(members)):
        member = members[(turn + place) % len(members)]
        if is_there(member):
            return member
    return None


class CheckSchedule:
    """Half offsets, ordered by the times of their next checks, on a clock that never jumps.

    An entry stays when its transaction ends; the caller ignores it when it is due.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, due: int, offset: int) -> None:
        """Schedules the check of a half."""
        heapq.heappush(self._heap, (due, offset))

    def take(self, now_ms: int) -> int | None:
        """Removes and returns the half that is due first; None if none is due."""
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        return heapq.heappop(self._heap)[1]

    def next_ms(self) -> int | None:
        """When the next half is due; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def tidy(self, pending: int, is_alive: Callable[[int], bool]) -> None:
        """Drops obsolete entries, so that memory is proportional to the undecided halves."""
        if len(self._heap) > 2 * pending + _DEAD_MAX:
            self._heap = [entry for entry in self._heap if is_alive(entry[1])]
            heapq.heapify(self._heap)
