"""What may become of a group."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.election.elector import ElectionRefused, GroupView, Member
from sprocket.election.group_state import (
    GroupState,
    MemberRecord,
    claimed,
    handed_over,
    view_of,
    with_in_sync,
)
from sprocket.election.leased_keys import KeyValue, Picture

numbers = st.integers(1, 5)
sets = st.frozensets(numbers, min_size=1)
states = st.builds(
    GroupState, st.integers(1, 1 << 40), numbers, sets, st.integers(1, 1 << 40), st.text()
)
views = st.builds(
    lambda state, alive: view_of(
        state, {n: Member(n, f"h{n}:1", f"h{n}:2", n in alive) for n in range(1, 6)}, 9
    ),
    st.none() | states,
    st.frozensets(numbers),
)


@given(states)
def test_a_state_survives_its_key(state: GroupState) -> None:
    assert GroupState.decode(state.encode()) == state


@given(st.text(), st.text(), st.integers(), st.text())
def test_a_record_survives_its_key(address: str, other: str, priority: int, code: str) -> None:
    record = MemberRecord(address, other, priority, code)
    assert MemberRecord.decode(record.encode()) == record


good = json.loads(GroupState(1, 2, frozenset({2}), 3).encode())


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "7", '"epoch"', "{}", "[1, 2", *(
            json.dumps({**good, name: wrong})
            for name in ("epoch", "master", "in_sync", "set_epoch")
            for wrong in (None, "1", -1, 1.5, True, 1 << 63, [-1], ["1"], {})
        ),
    ],
)  # fmt: skip
def test_a_key_that_holds_something_else_is_recognised(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        GroupState.decode(text)


def test_records_are_those_under_members_that_can_be_read() -> None:
    record = MemberRecord("a:1", "a:2", 0, "c")
    found = {
        key: KeyValue(key, value, 1)
        for key, value in {
            "/g/members/3": record.encode(), "/g/members/x": record.encode(),
            "/g/members/4": "{", "/g/members/5": '{"priority": "high"}', "/g/alive/6": "",
            "/g/members/²": record.encode(), "/g/group": record.encode(),
        }.items()
    }  # fmt: skip
    assert MemberRecord.all_in(Picture(1, found), "/g/") == {3: record}


@given(views, numbers, st.integers(0, 1 << 41), st.booleans())
def test_a_claim_keeps_what_was_acknowledged(
    view: GroupView, me: int, last_epoch: int, is_unclean: bool
) -> None:
    try:
        state = claimed(view, me, last_epoch=last_epoch, is_unclean=is_unclean)
    except ElectionRefused:
        assert me not in view.in_sync
        return
    assert state.master == me
    assert me in state.in_sync
    assert state.epoch > max(view.epoch, last_epoch)
    assert state.set_epoch == view.set_epoch + 1
    if view.epoch and me not in view.in_sync:
        assert is_unclean
        assert not any(view.members[each].is_alive for each in view.in_sync)
    elif view.epoch:
        assert state.in_sync <= view.in_sync
        assert state.in_sync >= view.in_sync - {view.master}


@given(views, numbers, st.booleans())
def test_handing_over_keeps_what_was_acknowledged(
    view: GroupView, to: int, is_unclean: bool
) -> None:
    try:
        state = handed_over(view, to, is_unclean=is_unclean)
    except ElectionRefused:
        assert not is_unclean
        return
    assert (state.master, state.epoch) == (to, view.epoch + 1)
    assert to in state.in_sync
    if not is_unclean:
        assert state.in_sync == (view.in_sync - {view.master}) | {to}
        assert view.members[to].is_alive


@given(views, numbers, sets)
def test_only_the_master_changes_the_set(view: GroupView, me: int, members: frozenset[int]) -> None:
    try:
        state = with_in_sync(view, me, members)
    except ElectionRefused:
        assert me != view.master or me not in members
        return
    assert me == view.master
    assert (state.epoch, state.master) == (view.epoch, me)
    assert state.in_sync == members
    assert state.set_epoch == view.set_epoch + 1


def test_who_is_no_member_cannot_be_in_sync() -> None:
    view = view_of(GroupState(1, 1, frozenset({1}), 1), {1: Member(1, "a:1", "a:2")}, 4)
    with pytest.raises(ElectionRefused, match="2, 3 are no members"):
        with_in_sync(view, 1, frozenset({1, 2, 3}))
