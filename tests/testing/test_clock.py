"""Clocks under control."""

from __future__ import annotations

from sprocket.testing.clock import EPOCH_MS, LoopClock, ManualClock
from tests.support import run


def test_a_manual_clock_moves_only_when_moved() -> None:
    clock = ManualClock()
    assert clock.now_ms() == EPOCH_MS
    clock.move(5)
    clock.move(-7)
    assert clock.now_ms() == EPOCH_MS - 2


def test_a_loop_clock_keeps_its_skew() -> None:
    async def main() -> int:
        return LoopClock(skew_ms=60_000).now_ms() - LoopClock().now_ms()

    assert 59_990 <= run(main()) <= 60_010
