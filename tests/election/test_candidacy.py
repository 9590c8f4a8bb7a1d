from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.election.candidacy import (
    Candidate,
    Choice,
    Course,
    Signs,
    Standing,
    choice,
    course,
    may_lead,
    successor,
)
from sprocket.election.elector import GroupView, Member

LEASE = 3.0


def members(*numbers: int, dead: frozenset[int] = frozenset()) -> dict[int, Member]:
    return {n: Member(n, f"h{n}:1", f"h{n}:2", n not in dead) for n in numbers}


@pytest.mark.parametrize(
    ("view", "standing", "does"),
    [
        (GroupView(), Standing(1), Course.SEEK),
        (GroupView(4, 2), Standing(1), Course.FOLLOW),
        (GroupView(4, 2), Standing(1, epoch=4), Course.GO_ON),
        (GroupView(5, 3), Standing(1, epoch=4), Course.FOLLOW),
        (GroupView(5, 3), Standing(1, is_leading=True, epoch=4), Course.FOLLOW),
        (GroupView(5, 1), Standing(1, epoch=4, written=4), Course.LEAD),
        (GroupView(4, 1), Standing(1, is_leading=True, epoch=4), Course.GO_ON),
        (GroupView(5, 1), Standing(1, is_leading=True, epoch=4, written=4), Course.LEAD),
        (GroupView(4, None), Standing(1, epoch=4), Course.SEEK),
        (GroupView(4, None), Standing(1, is_leading=True, epoch=4), Course.GO_ON),
        (GroupView(3, 2), Standing(1, is_leading=True, epoch=4), Course.GO_ON),
    ],
)
def test_a_view_says_who_leads(view: GroupView, standing: Standing, does: Course) -> None:
    assert course(view, standing) is does


def test_a_master_that_was_killed_leads_in_a_new_epoch_only() -> None:
    view = GroupView(4, 1)
    assert course(view, Standing(1, written=4)) is Course.SEEK
    assert course(view, Standing(1, written=4), resumes=True) is Course.LEAD


@pytest.mark.parametrize(
    ("signs", "is_lost"),
    [(Signs(True), True), (Signs(silent=2.0), False), (Signs(silent=2.1), True)],
)
def test_an_ended_master_is_lost_at_once_a_silent_one_later(signs: Signs, is_lost: bool) -> None:
    assert signs.is_lost(LEASE) is is_lost


@pytest.mark.parametrize(
    ("view", "member", "unclean", "may"),
    [
        (GroupView(), 1, False, True),
        (GroupView(4, 2, frozenset({1, 2})), 1, False, True),
        (GroupView(4, 2, frozenset({2}), members=members(1, 2)), 1, False, False),
        (GroupView(4, 2, frozenset({2}), members=members(1, 2)), 1, True, True),
        (GroupView(4, 2, frozenset({2, 3}), members=members(1, 2, 3)), 1, True, False),
        (
            GroupView(4, 2, frozenset({2, 3}), members=members(1, 2, 3, dead=frozenset({3}))),
            1,
            True,
            True,
        ),
    ],
)
def test_only_members_of_the_set_may_lead(
    view: GroupView, member: int, unclean: bool, may: bool
) -> None:
    assert may_lead(view, member, is_unclean=unclean) is may


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.integers(1, 5),
        st.integers(1, 3),
        st.integers(0, 3),
        st.integers(0, 2),
        hears=st.booleans(),
    ),
    min_size=1,
    unique_by=lambda each: each.id,
)


def choices(found: list[Candidate], *, is_ended: bool, waited: float) -> dict[int, Choice]:
    return {
        me.id: choice(
            me,
            [each for each in found if each is not me],
            is_ended=is_ended,
            waited=waited,
            lease=LEASE,
        )
        for me in found
    }


@given(CANDIDATES)
def test_of_those_that_know_of_each_other_the_best_alone_claims_at_once(
    found: list[Candidate],
) -> None:
    best = successor(found)
    assert best is not None
    made = choices(found, is_ended=True, waited=0.0)
    assert [each for each, does in made.items() if does is Choice.CLAIM] == [best.id]
    assert all((each.epoch, each.end) <= (best.epoch, best.end) for each in found), (
        "what one of them has, the best has"
    )


@given(CANDIDATES)
def test_whoever_has_waited_for_a_better_one_claims(found: list[Candidate]) -> None:
    made = choices(found, is_ended=True, waited=LEASE)
    assert set(made.values()) == {Choice.CLAIM}


@given(CANDIDATES)
def test_nobody_claims_while_another_one_hears_a_master_that_is_only_silent(
    found: list[Candidate],
) -> None:
    made = choices(found, is_ended=False, waited=LEASE)
    for me in found:
        others_hear = any(each.hears for each in found if each is not me)
        assert (made[me.id] is Choice.WAIT) is others_hear


def test_of_equals_the_preferred_one_leads_then_the_lowest_number() -> None:
    assert successor([Candidate(2, 1, 5, 1), Candidate(3, 1, 5), Candidate(4, 1, 5)]) == (
        Candidate(3, 1, 5)
    )
    assert successor([]) is None
