"""Pages, times, and what is made of named tuples."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.operations.values import Page, PageAsked, fields_of, ms_of, page_of, time_of

NAMES = st.lists(st.text("abAB", min_size=1, max_size=3), unique=True)


@given(NAMES, st.integers(1, 4), st.text("aB", max_size=2))
def test_the_pages_of_a_list_are_the_list(names: list[str], limit: int, search: str) -> None:
    found: list[str] = []
    after = None
    while True:
        page = page_of(names, PageAsked(search=search, limit=limit, after=after), lambda name: name)
        assert len(page.items) <= limit
        found += page.items
        if page.next is None:
            break
        after = page.next
    wanted = sorted(name for name in names if search.lower() in name.lower())
    assert found == wanted
    assert page == Page(items=page.items, total=len(wanted), next=None)


def test_a_time_that_is_none_is_left_out() -> None:
    assert time_of(1_700_000_000_001) == datetime(2023, 11, 14, 22, 13, 20, 1_000, tzinfo=UTC)
    for none in (0, -1, 2**63 - 1, 10**30):
        assert time_of(none) is None


def test_a_time_that_is_asked_for_is_exact_to_the_millisecond() -> None:
    for ms in (0, 1, 1_700_000_000_001, 253_402_300_799_999):
        assert ms_of(datetime.fromtimestamp(ms / 1_000, UTC), -1) == ms
    assert ms_of(datetime(1, 1, 1, tzinfo=UTC), -1) == 0
    assert ms_of(None, 7) == 7


class Inner(NamedTuple):
    number: int


class Outer(NamedTuple):
    name: str
    inner: list[Inner]
    by_name: dict[str, Inner]


def test_named_tuples_become_objects_however_deep() -> None:
    made = fields_of(Outer("a", [Inner(1)], {"b": Inner(2)}))
    assert made == {"name": "a", "inner": [{"number": 1}], "by_name": {"b": {"number": 2}}}
