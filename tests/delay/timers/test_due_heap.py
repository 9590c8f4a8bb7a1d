"""The agenda gives what is due, in the order of its time, and of the log within a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.delay.timers.due_heap import DueHeap

entries = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1 << 40)), unique=True)


@given(entries, entries)
def test_what_is_due_comes_in_order_and_nothing_early(
    loaded: list[tuple[int, int]], late: list[tuple[int, int]]
) -> None:
    agenda = DueHeap()
    agenda.extend(loaded)
    agenda.order()
    for due_ms, position in late:
        agenda.put(due_ms, position)
    assert agenda.left() == [position for _, position in sorted(loaded + late)]
    came = []
    for now_ms in range(21):
        while (position := agenda.first(now_ms)) is not None:
            assert agenda.next_ms() == agenda.next_ms()
            came.append((now_ms, position))
            agenda.drop()
    assert came == sorted(loaded + late)
    assert (len(agenda), agenda.next_ms(), agenda.first(99)) == (0, None, None)
