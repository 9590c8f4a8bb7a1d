"""Tag expressions."""

from __future__ import annotations

import pytest

from sprocket.base.errors import SubscriptionInvalid
from sprocket.filter.tags import TagFilter
from sprocket.message.hashing import tag_code
from sprocket.message.properties import TAGS


@pytest.mark.parametrize("expression", ["*", "", None])
def test_nothing_said_means_everything(expression: str | None) -> None:
    everything = TagFilter.parse(expression)
    assert everything.is_all
    assert everything.matches({TAGS: "any"})
    assert everything.matches({})


def test_words_match_by_tag_and_by_code() -> None:
    some = TagFilter.parse(" paid || new ||")
    assert some.tags == ("paid", "new")
    assert [some.matches({TAGS: tag}) for tag in ("paid", "new", "old")] == [1, 1, 0]
    assert not some.matches({})
    assert some.codes == {tag_code("paid"), tag_code("new")}


def test_two_tags_of_one_hash_are_told_apart_by_name_only() -> None:
    aa = TagFilter.parse("Aa")
    assert tag_code("BB") in aa.codes
    assert not aa.matches({TAGS: "BB"})


def test_a_single_bar_is_part_of_a_tag() -> None:
    assert TagFilter.parse("a|b").tags == ("a|b",)


@pytest.mark.parametrize("expression", ["||", "||||"])
def test_separators_alone_are_refused(expression: str) -> None:
    with pytest.raises(SubscriptionInvalid):
        TagFilter.parse(expression)


def test_blanks_between_separators_match_nothing() -> None:
    nothing = TagFilter.parse(" || ")
    assert not nothing.is_all
    assert not nothing.matches({TAGS: "a"})
