"""Handles that were used before: the newest one is found, and memory is bounded."""

from __future__ import annotations

from sprocket.broker.pop.changed_handles import ChangedHandles
from sprocket.message.pop_handle import PopHandle


def handle(pop_ms: int, offset: int = 5, invisible_ms: int = 100) -> PopHandle:
    return PopHandle(offset, pop_ms, invisible_ms, 0, "0", "b", 1, offset)


def test_a_handle_leads_to_the_newest_one() -> None:
    changed = ChangedHandles()
    changed.note("g", "t", handle(1), handle(2), now_ms=1)
    changed.note("g", "t", handle(2), handle(3), now_ms=2)
    assert changed.newest("g", "t", handle(1)) == handle(3)
    assert changed.newest("g", "t", handle(3)) == handle(3)
    assert changed.newest("h", "t", handle(1)) == handle(1)
    assert changed.newest("g", "t", handle(1, offset=6)) == handle(1, offset=6)


def test_those_whose_time_is_over_and_the_oldest_of_too_many_are_forgotten() -> None:
    changed = ChangedHandles(handles_max=3)
    for number in range(4):
        changed.note("g", "t", handle(number), handle(number + 50), now_ms=0)
    assert len(changed) == 3
    assert changed.newest("g", "t", handle(0)) == handle(0)
    changed.note("g", "t", handle(60), handle(61), now_ms=200)
    assert len(changed) == 2
