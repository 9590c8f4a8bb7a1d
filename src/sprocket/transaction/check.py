"""When a producer is asked what became of its transaction, who is asked, and when that ends. Pure.

Nobody is asked before the immunity of a half is over: the time that its sender wished, or else the
broker's. From then on one live producer of the group is asked again and again, each time another
one. After so many questions without an answer the half is parked. A question that could not be put,
because no producer of the group is there, does not count; but a half that is too old is parked.
Source: TransactionalMessageServiceImpl.check, TransactionalMessageUtil.getImmunityTime of
RocketMQ 5.x, which counts before it looks whether anybody can be asked.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from sprocket.transaction.half import Half

T = TypeVar("T")

#: Dead entries that an agenda carries along before it is tidied up.
_DEAD_MAX = 1024


class Rules(NamedTuple):
    """What the broker's settings say.

    Attributes:
        timeout_ms: immunity of halves whose sender did not ask for more.
        interval_ms: pause between two checks of one half.
        checks_max: questions before it is parked.
        age_ms_max: age at which it is parked even if nobody could be asked.
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


def due_ms(half: Half, rules: Rules) -> int:
    """When a half is to be looked at."""
    if half.checks:
        return half.stored_ms + rules.interval_ms
    return half.began_ms + max(half.immunity_ms, rules.timeout_ms)


def judge(half: Half, rules: Rules, *, now_ms: int, can_ask: bool) -> Verdict:
    """What to do with a half whose time has come.

    Args:
        can_ask: whether a producer of its group is there.
    """
    if half.checks >= rules.checks_max:
        return Verdict.PARK
    if can_ask:
        return Verdict.ASK
    is_old = now_ms - due_ms(half._replace(checks=0), rules) > rules.age_ms_max
    return Verdict.PARK if is_old else Verdict.WAIT


def choose(members: Sequence[T], turn: int, is_there: Callable[[T], bool]) -> T | None:
    """The member whose turn it is, or the next one that is there."""
    for place in range(len(members)):
        member = members[(turn + place) % len(members)]
        if is_there(member):
            return member
    return None


class Agenda:
    """Half offsets by the time at which they are to be looked at.

    What has ended is not taken out, but left out when its time comes.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, due: int, offset: int) -> None:
        """Notes when to look at a half."""
        heapq.heappush(self._heap, (due, offset))

    def take(self, now_ms: int) -> int | None:
        """The half that is due first, if one is."""
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        return heapq.heappop(self._heap)[1]

    def next_ms(self) -> int | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None

    def tidy(self, pending: int, is_alive: Callable[[int], bool]) -> None:
        """Keeps the memory in proportion to what is undecided."""
        if len(self._heap) > 2 * pending + _DEAD_MAX:
            self._heap = [entry for entry in self._heap if is_alive(entry[1])]
            heapq.heapify(self._heap)
