"""How many messages wait, by time."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sprocket.delay.timers.timer_files import TimerFiles
from sprocket.delay.timers.turn import Turn


class Pending(NamedTuple):
    """How many messages wait.

    Attributes:
        spans: due within so many seconds, and not within the number before.
        later: due later than that.
        total: all of them.
        next_ms: when the next may be due; 0 for none.
    """

    spans: dict[int, int]
    later: int
    total: int
    next_ms: int


async def pending(
    files: TimerFiles | None, turn: Turn, now_ms: int, spans_seconds: Sequence[int]
) -> Pending:
    """Counts what waits, to the width of a slot. Others have turns in between.

    Args:
        spans_seconds: rising; see `Pending.spans`.
    """
    counted = [0] * (len(spans_seconds) + 1)
    first_ms = 0
    limits_ms = [now_ms + seconds * 1000 for seconds in spans_seconds]
    if files is not None:
        for row in files.wheel.rows(turn.end_ms):
            for slot_ms, slot in row:
                counted[bisect_left(limits_ms, slot_ms)] += slot.waiting - slot.rolled
                counted[-1] += slot.rolled
                first_ms = min(first_ms or slot_ms, slot_ms)
            await asyncio.sleep(0)
        current = len(turn.agenda) if turn.is_loaded else files.wheel.get(turn.slot_ms).waiting
        counted[0] += current
        first_ms = turn.slot_ms if current else first_ms
    *within, later = (max(count, 0) for count in counted)
    spans = dict(zip(spans_seconds, within, strict=True))
    return Pending(spans, later, sum(within) + later, first_ms)
