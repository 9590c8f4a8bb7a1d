"""Counts the messages that wait, by due time."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sprocket.delay.timers.current_slot import CurrentSlot
from sprocket.delay.timers.timer_files import TimerFiles


class DueCounts(NamedTuple):
    """Numbers of messages that wait.

    Attributes:
        spans: by number of seconds, those due within them but not within the number before.
        later: those due later.
        total: all of them.
        next_ms: begin of the first slot with messages, ms; 0 for none.
    """

    spans: dict[int, int]
    later: int
    total: int
    next_ms: int


async def pending(
    files: TimerFiles | None, turn: CurrentSlot, now_ms: int, spans_seconds: Sequence[int]
) -> DueCounts:
    """Counts the messages that wait, with the precision of a slot.

    The wheel has 1,209,600 slots, and a look through all of them at once took 5 to 230 ms of the
    loop; so other tasks run between its rows.

    Args:
        spans_seconds: rising numbers of seconds; see `DueCounts.spans`.
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
    return DueCounts(spans, later, sum(within) + later, first_ms)
