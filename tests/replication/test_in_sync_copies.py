"""What all of the in-sync set have: never more, and it never goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.replication.copies import CopyRules
from sprocket.replication.in_sync_copies import InSyncCopies


def of_two(confirmed: int = 100) -> InSyncCopies:
    copies = InSyncCopies(1, CopyRules(least=2), confirmed=confirmed, epoch_start=200)
    copies.set_in_sync(frozenset({1, 2}), 5)
    return copies


def test_alone_the_master_confirms_what_it_has() -> None:
    copies = InSyncCopies(1, CopyRules(least=1))
    assert copies.is_alone
    assert copies.readable(300) == 300
    assert copies.is_enough(300)


def test_a_member_that_has_not_reported_has_what_was_confirmed() -> None:
    copies = of_two()
    assert not copies.is_alone
    assert copies.readable(300) == 100
    copies.report(1, 2, 250, end=300, now=1.0)
    assert copies.readable(300) == 250
    copies.report(1, 2, 300, end=300, now=2.0)
    assert copies.readable(300) == 300


def test_others_do_not_count() -> None:
    copies = of_two()
    copies.report(7, 3, 300, end=300, now=1.0)
    assert copies.readable(300) == 100
    assert copies.may_enter(3, 300)


def test_who_has_left_stops_nothing_and_who_is_away_does() -> None:
    copies = of_two()
    copies.report(1, 2, 250, end=250, now=1.0)
    copies.forget(1)
    assert copies.readable(400) == 250
    assert not copies.members[2].is_connected
    copies.set_in_sync(frozenset({1}), 6)
    assert copies.readable(400) == 400
    assert not copies.is_enough(400)


def test_while_a_change_is_asked_for_both_sets_count() -> None:
    """It may have been made although its answer is lost: then the new member could lead."""
    copies = InSyncCopies(1, CopyRules(least=1), confirmed=0)
    copies.report(1, 2, 250, end=300, now=1.0)
    copies.propose(frozenset({1, 2}))
    assert copies.readable(300) == 250
    copies.set_in_sync(frozenset({1}), 7)
    assert copies.readable(300) == 300


def test_an_old_view_of_the_set_changes_nothing() -> None:
    copies = of_two()
    copies.set_in_sync(frozenset({1}), 4)
    assert copies.in_sync == {1, 2}


def test_a_member_enters_with_all_that_is_confirmed_and_was_there_before() -> None:
    copies = of_two(confirmed=100)
    assert not copies.may_enter(3, 300)
    copies.report(9, 3, 150, end=300, now=1.0)
    assert not copies.may_enter(3, 300)
    copies.report(9, 3, 200, end=300, now=1.0)
    assert copies.may_enter(3, 300)
    copies.forget(9)
    assert not copies.may_enter(3, 300)
    copies.report(10, 3, 200, end=300, now=1.0)
    assert copies.may_enter(3, 300)
    copies.report(1, 2, 300, end=300, now=1.0)
    assert not copies.may_enter(3, 300)


def test_it_knows_when_a_member_last_had_everything_and_was_last_heard() -> None:
    copies = of_two()
    copies.report(1, 2, 250, end=300, now=4.0)
    member = copies.members[2]
    assert (member.report, member.heard_at, member.caught_up_at) == (250, 4.0, None)
    copies.report(1, 2, 300, end=300, now=5.0)
    copies.report(1, 2, 300, end=900, now=6.0)
    assert (member.heard_at, member.caught_up_at, member.is_connected) == (6.0, 5.0, True)
    assert (copies.behind(2, 900), copies.behind(1, 900), copies.behind(3, 900)) == (600, 0, 800)


def test_under_load_it_has_had_everything_that_was_there_at_its_last_report() -> None:
    copies = of_two()
    for second in range(1, 10):
        end = 100 * second
        copies.report(1, 2, end - 100, end=end, now=float(second))
    assert copies.members[2].caught_up_at == 8.0
    for second in range(10, 20):
        copies.report(1, 2, 850, end=100 * second, now=float(second))
    assert copies.members[2].caught_up_at == 8.0


def test_the_newest_connection_of_a_member_counts() -> None:
    """A slave that lost its newest records comes back with less than it had reported."""
    copies = of_two()
    copies.report(1, 2, 300, end=300, now=1.0)
    copies.report(4, 2, 220, end=300, now=2.0)
    copies.report(1, 2, 300, end=300, now=3.0)
    copies.forget(1)
    assert (copies.members[2].report, copies.members[2].is_connected) == (220, True)
    assert copies.readable(400) == 220


events = st.lists(
    st.tuples(st.sampled_from("rspg"), st.integers(2, 4), st.integers(0, 400)), max_size=40
)


@given(events)
def test_it_never_goes_back_and_all_who_count_have_it(
    history: list[tuple[str, int, int]],
) -> None:
    copies = InSyncCopies(1, CopyRules(), confirmed=50)
    end, version, last = 50, 0, 50
    counted = {1}
    has = dict.fromkeys((2, 3, 4), 50)
    for kind, member, number in history:
        if kind == "g":
            end += number
        elif kind == "r":
            has[member] = min(max(has[member], number), end)
            copies.report(member, member, has[member], end=end, now=0.0)
        elif kind == "s" and has[member] >= last:
            version += 1
            counted = {1, member}
            copies.set_in_sync(frozenset(counted), version)
        elif kind == "p" and has[member] >= last:
            counted = counted | {member}
            copies.propose(frozenset(counted))
        now = copies.readable(end)
        assert last <= now <= end
        if now > last:
            assert all(has[each] >= now for each in counted - {1})
        last = now
