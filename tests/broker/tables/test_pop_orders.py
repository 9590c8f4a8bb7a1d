"""Pops in order: the lock on a queue, attempts, acknowledgements, and Java's file."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.tables.pop_orders import Marks, OrderedPop, OrderTable

_POP_MS = 1700000000000


def table(marks: Marks | None = None) -> OrderTable:
    return OrderTable(lambda key, number: None, lambda: marks)


def give(
    orders: OrderTable,
    *offsets: int,
    pop_ms: int = _POP_MS,
    attempt: str | None = None,
    start: int = 0,
) -> dict[int, int]:
    row = orders.given(
        "g", "t", 3, offsets, pop_ms=pop_ms, invisible_ms=60_000, attempt=attempt, start=start
    )
    orders.put("g", "t", 3, row)
    return row.counts or {}


def acknowledge(orders: OrderTable, offset: int, pop_ms: int = _POP_MS) -> int | None:
    row = orders.acknowledged("g", "t", 3, [offset], pop_ms)
    if row is None:
        return None
    orders.put("g", "t", 3, row)
    return row.next_offset()


def hide(orders: OrderTable, offset: int, visible_ms: int, pop_ms: int = _POP_MS) -> bool:
    row = orders.hidden("g", "t", 3, offset, pop_ms=pop_ms, visible_ms=visible_ms)
    if row is not None:
        orders.put("g", "t", 3, row)
    return row is not None


def until(orders: OrderTable, now_ms: int, attempt: str | None = None) -> int | None:
    return orders.blocked_until("g", "t", 3, attempt=attempt, now_ms=now_ms)


def test_the_file_is_that_of_java() -> None:
    orders = table()
    give(orders, 5, 7, 8, attempt="att")
    assert acknowledge(orders, 5) == 7
    assert hide(orders, 7, _POP_MS + 99_000)
    java: dict[str, Any] = {"table": {"t@g": {"3": {
        "a": "att", "cm": 1, "i": 60000, "l": _POP_MS, "o": [5, 2, 3],
        "ot": {"7": 1700000099000}, "popTime": 1700000000000,
    }}}}  # fmt: skip
    assert orders.to_json() == java
    again = table()
    again.load(java)
    assert again.to_json() == java
    assert again.next_offsets() == [("g", "t", 3, 7)]
    assert give(again, 7, 8, 9, pop_ms=_POP_MS + 99_000) == {7: 1, 8: 1}


def test_a_queue_is_blocked_until_its_messages_are_done_or_visible() -> None:
    orders = table()
    assert until(orders, _POP_MS) is None
    give(orders, 5, 7)
    assert until(orders, _POP_MS) == _POP_MS + 60_000
    assert until(orders, _POP_MS + 60_000) is None
    assert hide(orders, 7, _POP_MS + 90_000)
    assert until(orders, _POP_MS + 60_000) == _POP_MS + 90_000
    assert acknowledge(orders, 7) == 5
    assert until(orders, _POP_MS + 60_000) is None
    assert acknowledge(orders, 5) == 8
    assert until(orders, _POP_MS) is None


def test_the_same_attempt_is_not_blocked_and_counts_once() -> None:
    orders = table()
    assert give(orders, 5, attempt="a") == {}
    assert until(orders, _POP_MS, "a") is None
    assert until(orders, _POP_MS, "b") == _POP_MS + 60_000
    assert give(orders, 5, pop_ms=_POP_MS + 1, attempt="a") == {}
    assert give(orders, 5, pop_ms=_POP_MS + 70_000, attempt="b") == {5: 1}
    assert give(orders, 5, pop_ms=_POP_MS + 150_000, attempt="c") == {5: 2}


def test_handles_of_an_earlier_pop_are_void() -> None:
    orders = table()
    give(orders, 5)
    give(orders, 5, pop_ms=_POP_MS + 70_000)
    assert acknowledge(orders, 5) is None
    assert not hide(orders, 5, 1)
    assert acknowledge(orders, 6, _POP_MS + 70_000) is None
    orders.put("g", "t", 3, None)
    assert acknowledge(orders, 5, _POP_MS + 70_000) is None


def test_what_is_old_or_belongs_to_nobody_is_dropped() -> None:
    orders = table()
    give(orders, 5)
    orders.keep(lambda topic, group: True, _POP_MS)
    assert orders.next_offsets()
    orders.keep(lambda topic, group: True, _POP_MS + 25 * 3_600_000)
    assert not orders.next_offsets()
    give(orders, 5)
    orders.keep(lambda topic, group: topic != "t", _POP_MS)
    assert not orders.next_offsets()


def test_the_file_says_from_where_on_records_count_and_java_s_says_nothing() -> None:
    orders = table({"revive": {2: 7}})
    give(orders, 5)
    again = table()
    again.load(orders.to_json())
    assert again.marks == {"revive": {2: 7}}
    assert again.row("t@g") == orders.row("t@g")
    again.load({"table": orders.to_json()["table"]})
    assert again.marks is None


def test_a_copy_replaces_the_rows_that_it_names() -> None:
    orders, copied = table(), table()
    give(orders, 5, 7)
    row = orders.to_json()["table"]["t@g"]["3"]
    copied.copy("t@g", {3: row, 4: row})
    assert copied.row("t@g") == {3: orders.row("t@g")[3], 4: orders.row("t@g")[3]}
    copied.copy("t@g", {3: None, 4: None, 5: None})
    assert not copied.names()
    assert not copied.rows_of(topic="t")


@given(st.lists(st.tuples(st.sets(st.integers(0, 9)), st.integers(1, 6)), min_size=1, max_size=8))
def test_nothing_that_is_acknowledged_is_given_out_again(
    rounds: list[tuple[set[int], int]],
) -> None:
    """Each round pops from the group's offset on, and acknowledges some of what it got."""
    orders, offset, done = table(), 0, set[int]()
    for number, (acknowledged, most) in enumerate(rounds):
        pop_ms = _POP_MS + number * 100_000
        skipped = orders.done_offsets("g", "t", 3)
        given_out = [each for each in range(offset, 10) if each not in skipped][:most]
        assert not done & set(given_out)
        if not given_out:
            break
        give(orders, *given_out, pop_ms=pop_ms, start=offset)
        for each in acknowledged & set(given_out):
            found = acknowledge(orders, each, pop_ms)
            assert found is not None
            offset = found
            done.add(each)
    assert all(each in done for each in range(offset))


@given(
    st.integers(0, 100),
    st.lists(st.integers(1, 80), unique=True, max_size=20).map(sorted),
    st.integers(0, (1 << 21) - 1),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_places_and_the_next_offset_are_those_of_the_list(
    first: int, distances: list[int], bits: int, later: list[int]
) -> None:
    row = OrderedPop(distances=[first, *distances], done_bits=bits, done_later=later or None)
    offsets = row.offsets()
    for offset in range(210):
        found = row.place_of(offset)
        assert found == (offsets.index(offset) if offset in offsets else None)
    still_open = [each for place, each in enumerate(offsets) if not row.is_done(place)]
    following = offsets[-1] + 1
    while following in later:
        following += 1
    assert row.next_offset() == (still_open[0] if still_open else following)
