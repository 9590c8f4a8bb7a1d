"""The wheel: what is put into a slot is in that slot, and nowhere else, however often it turns."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.delay.timers.wheel import EMPTY, SLOT, SLOT_BYTES, SLOTS, WHEEL_BYTES, Slot, Wheel

BUFFER = bytearray(WHEEL_BYTES)


def wheel(width_ms: int = 1000) -> Wheel:
    return Wheel(memoryview(bytearray(WHEEL_BYTES)), width_ms)


def test_the_file_is_as_long_as_javas() -> None:
    assert (WHEEL_BYTES, SLOT_BYTES, SLOTS) == (38_707_200, 32, 1_209_600)


def test_a_slot_stands_where_java_puts_it() -> None:
    raw = bytearray(WHEEL_BYTES)
    Wheel(memoryview(raw), 1000).add(1_704_067_205_000, 520, 1, 0)
    at = 1_704_067_205 % 1_209_600 * 32
    assert SLOT.unpack_from(raw, at) == (1_704_067_205, 520, 520, 1, 0)


def test_units_join_their_slot_and_are_counted() -> None:
    turning = wheel()
    turning.add(5000, 0, 1, 0)
    turning.add(5000, 52, 1, 1)
    turning.add(5000, 104, -1, 0)
    assert turning.get(5000) == turning.get(5999) == Slot(0, 104, 1, 1)
    assert turning.get(6000) == EMPTY


def test_a_slot_of_another_turn_is_empty_and_is_taken_over() -> None:
    turning = wheel()
    turning.add(5000, 0, 1, 1)
    later = 5000 + turning.span_ms
    assert turning.get(later) == EMPTY
    turning.add(later, 52, 1, 0)
    assert turning.get(later) == Slot(52, 52, 1, 0)
    assert turning.get(5000) == EMPTY


def test_a_cleared_slot_begins_anew() -> None:
    turning = wheel()
    turning.add(5000, 0, 1, 0)
    turning.clear(5000)
    assert turning.get(5000) == EMPTY
    turning.add(5000, 52, 1, 0)
    assert turning.get(5000) == Slot(52, 52, 1, 0)


times = st.integers(1, 3 * SLOTS)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(times, st.booleans()), max_size=40), times, st.sampled_from([1000, 100]))
def test_used_slots_are_those_that_a_plain_table_has(
    steps: list[tuple[int, bool]], start: int, width_ms: int
) -> None:
    turning = Wheel(memoryview(BUFFER), width_ms)
    table: dict[int, tuple[int, int]] = {}
    for position, (number, is_cleared) in enumerate(steps):
        if is_cleared:
            turning.clear(number * width_ms)
            table.pop(number % SLOTS, None)
        else:
            turning.add(number * width_ms, position, 1, 0)
            told, count = table.get(number % SLOTS, (number, 0))
            table[number % SLOTS] = (number, count + 1 if told == number else 1)
    used = {ms: slot.waiting for ms, slot in turning.used(start * width_ms)}
    expected = {n * width_ms: c for n, c in table.values() if start <= n < start + SLOTS}
    assert used == expected
    until_ms = (start + SLOTS) * width_ms
    at = start * width_ms
    while (found := turning.next_used(at, until_ms)) < until_ms and found not in used:
        at = found
    assert found == min(used, default=until_ms)
    for number, _ in steps:
        turning.clear(number * width_ms)
