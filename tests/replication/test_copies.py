"""How many copies there are: never more than there are."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.replication.copies import Copies, CopyRules


def copies(
    *reports: tuple[int, str, int], registered: dict[str, int] | None = None, wanted: int = 2
) -> Copies:
    found = Copies(CopyRules(wanted))
    found.registered = registered
    for report in reports:
        found.report(*report)
    return found


def test_the_nth_highest_position_is_replicated() -> None:
    links = ((1, "a", 50), (2, "b", 70), (3, "c", 60))
    assert [copies(*links).replicated(count, 100) for count in range(1, 6)] == [
        100, 70, 60, 50, 0,
    ]  # fmt: skip


def test_a_report_beyond_the_log_counts_up_to_its_end() -> None:
    assert copies((1, "a", 10**9)).replicated(2, 100) == 100


def test_two_links_of_one_slave_count_once_and_by_the_lower_one() -> None:
    both = ((1, "a", 50), (2, "a", 70))
    assert copies(*both, registered={"a": 1}).offsets() == [50]
    assert copies(*both).offsets() == [50]
    assert copies(*both, registered={"a": 2}).offsets() == [70, 50]


def test_reports_from_a_host_without_a_registered_slave_count_for_nothing() -> None:
    found = copies((1, "a", 50), (2, "stranger", 90), registered={"a": 1})
    assert found.offsets() == [50]
    assert found.is_known("a")
    assert not found.is_known("stranger")


def test_a_closed_link_no_longer_counts() -> None:
    found = copies((1, "a", 50))
    found.forget(1)
    assert found.replicated(2, 100) == 0
    assert found.in_sync(100) == 1


def test_a_slave_far_behind_is_not_in_sync() -> None:
    found = Copies(CopyRules(2, gap_bytes=100))
    found.report(1, "a", 1000)
    assert found.in_sync(1099) == 2
    assert found.in_sync(1100) == 1


def test_messages_are_accepted_with_the_least_copies_in_sync() -> None:
    found = Copies(CopyRules(3, least=2))
    assert not found.is_enough(100)
    found.report(1, "a", 90)
    assert found.is_enough(100)
    assert found.replicated(3, 100) == 0


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.integers(0, 300), max_size=4),
)
def test_what_is_wanted_follows_what_is_in_sync_down_to_the_least(
    wanted: int, least: int, positions: list[int]
) -> None:
    least = min(wanted, least)
    found = Copies(CopyRules(wanted, least, gap_bytes=100, follows_sync=True))
    for number, position in enumerate(positions):
        found.report(number, str(number), position)
    now = found.wanted(300)
    assert least <= now <= wanted
    assert now == wanted or now == max(least, found.in_sync(300))
    fixed = Copies(CopyRules(wanted, least, gap_bytes=100))
    assert fixed.wanted(300) == wanted


@pytest.mark.parametrize("count", [1, 2, 3])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=6),
)
def test_so_many_slaves_have_it_whatever_link_belongs_to_whom(
    count: int, links: list[tuple[int, int]]
) -> None:
    """Links from one host belong to `count` slaves in any way: the claim holds in each."""
    slaves = [slave % count for slave, _ in links]
    found = copies(
        *((number, "a", offset) for number, (_, offset) in enumerate(links)),
        registered={"a": len(set(slaves))},
    )
    claimed = found.offsets()
    has: dict[int, int] = {}
    for slave, (_, offset) in zip(slaves, links, strict=True):
        has[slave] = max(has.get(slave, 0), offset)
    for number, offset in enumerate(claimed, 1):
        assert sum(each >= offset for each in has.values()) >= number
    assert all(a >= b for a, b in product(claimed[:1], claimed))
