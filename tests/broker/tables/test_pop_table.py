"""Messages in flight, void handles and marks, as a value that is saved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.tables.pop_table import PopTable
from sprocket.store.state.snapshot import decode_state, encode_state


@given(st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 2), st.integers(-5, 5))))
def test_counts_never_go_below_none(changes: list[tuple[str, int, int]]) -> None:
    table, model = PopTable(), dict[tuple[str, int], int]()
    for group, number, count in changes:
        table.add(group, "t", number, count)
        model[group, number] = max(0, model.get((group, number), 0) + count)
    for (group, number), count in model.items():
        assert table.in_flight(group, "t", number) == count
    assert table.is_used == any(model.values())


def test_a_reset_makes_what_was_popped_void_and_forgets_it_in_the_end() -> None:
    table = PopTable()
    table.add("g", "t", 0, 3)
    assert table.void_ms("g", "t", 0) == -1
    table.reset("g", "t", 0, 1000)
    assert table.in_flight("g", "t", 0) == 0
    assert table.void_ms("g", "t", 0) == 1000
    assert table.void_ms("g", "t", 1) == -1
    table.forget_voids(1000)
    assert table.void_ms("g", "t", 0) == 1000
    table.forget_voids(1001)
    assert table.void_ms("g", "t", 0) == -1


def test_the_table_reads_back_and_without_one_there_are_no_marks() -> None:
    table = PopTable()
    table.load(None)
    assert table.marks is None
    table.mark("revive", 1, 7)
    assert not table.is_used
    table.marks = {}
    table.mark("revive", 1, 7)
    table.add("g", "t", 0, 3)
    table.reset("h", "t", 2, 5)
    again = PopTable()
    again.load(decode_state(encode_state({"popTable": table.to_json()}))["popTable"])
    assert again.to_json() == table.to_json()
    assert again.marks == {"revive": {1: 7}}
