"""Another number of brokers in a folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sprocket.base.errors import UsageError
from sprocket.container.remembered import ROOT, ContainerState, new_state
from sprocket.container.resizing import resized


def drained(state: ContainerState) -> ContainerState:
    entries = [replace(each, drained=each.leaves) for each in state.brokers]
    return replace(state, brokers=tuple(entries))


def test_more_brokers_are_added_behind_the_others() -> None:
    change = resized(new_state("b", 2), 4, name="b", is_there=lambda folder: folder == "3")
    assert [each.name for each in change.after.brokers] == ["b-0", "b-1", "b-2", "b-3"]
    assert [each.name for each in change.added] == ["b-2", "b-3"]
    assert change.lines[0].startswith("b-2 is added, empty")
    assert change.lines[1].startswith("b-3 is added, with what 3 has")


def test_a_single_broker_keeps_its_name_and_its_folder() -> None:
    change = resized(None, 3, name="broker-a")
    first = change.after.brokers[0]
    assert (first.name, first.folder) == ("broker-a", ROOT)
    assert [each.name for each in change.added] == ["broker-a-1", "broker-a-2"]
    assert "keeps its name, its folder and its messages" in change.lines[0]


def test_fewer_come_in_two_steps_and_nothing_is_removed_before_it_is_empty() -> None:
    marked = resized(new_state("b", 4), 2, name="b").after
    assert [each.leaves for each in marked.brokers] == [False, False, True, True]
    assert marked.count == 2
    with pytest.raises(UsageError, match="messages remain in b-2, b-3"):
        resized(marked, 2, name="b")
    half = replace(marked, brokers=(*marked.brokers[:3], replace(marked.brokers[3], drained=True)))
    with pytest.raises(UsageError, match="messages remain in b-2:"):
        resized(half, 2, name="b")
    assert resized(drained(marked), 2, name="b").after == new_state("b", 2)
    forced = resized(half, 2, name="b", may_leave_messages=True)
    assert forced.after == new_state("b", 2)
    assert "its folder 3 stays" in forced.lines[1]


def test_one_that_was_to_leave_takes_messages_again() -> None:
    marked = drained(resized(new_state("b", 4), 2, name="b").after)
    change = resized(marked, 4, name="b")
    assert change.after == new_state("b", 4)
    assert change.added == ()


@pytest.mark.parametrize("state", [None, new_state("b", 1)])
def test_the_same_number_changes_nothing(state: ContainerState | None) -> None:
    with pytest.raises(UsageError, match="nothing is to change"):
        resized(state, 1, name="b")


@given(is_single=st.booleans(), counts=st.lists(st.integers(1, 12), max_size=12))
def test_any_history_of_changes_keeps_names_folders_and_who_is_not_empty(
    is_single: bool, counts: list[int]
) -> None:
    state = None if is_single else new_state("b", 3)
    for count in counts:
        before = {} if state is None else {each.name: each for each in state.brokers}
        try:
            change = resized(state, count, name="b")
        except UsageError:
            continue
        state = change.after
        assert state.count == count or any(each.leaves for each in before.values())
        assert len({each.name for each in state.brokers}) == len(state.brokers)
        assert len({each.folder for each in state.brokers}) == len(state.brokers)
        assert list(state.brokers) == sorted(state.brokers, key=lambda each: each.number)
        gone = before.keys() - {each.name for each in state.brokers}
        assert all(before[name].drained for name in gone)
        assert all(
            (each.number, each.folder) == (before[each.name].number, before[each.name].folder)
            for each in state.brokers
            if each.name in before
        )
        if change.after.brokers[0].leaves is False:
            state = drained(state)
