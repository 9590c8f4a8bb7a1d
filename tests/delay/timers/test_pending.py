"""Counting what waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sprocket.delay.timers.pending import DueCounts, pending
from sprocket.delay.timers.wheel import WHEEL_BYTES, Wheel


def test_what_waits_is_counted_by_time_and_others_have_turns() -> None:
    wheel = Wheel(memoryview(bytearray(WHEEL_BYTES)), 1000)
    for second in (10, 70, 1_000_000):
        wheel.add(second * 1000, 0, count=5, rolled=1)
    files: Any = SimpleNamespace(wheel=wheel)
    turn: Any = SimpleNamespace(end_ms=2_000, slot_ms=1_000, is_loaded=True, agenda=[1, 2])
    counting = pending(files, turn, 1_000, (60, 3600)).__await__()
    turns = 0
    while True:
        try:
            next(counting)
        except StopIteration as end:
            found: DueCounts = end.value
            break
        turns += 1
    assert found == DueCounts({60: 6, 3600: 4}, later=7, total=17, next_ms=1_000)
    assert turns > 500
