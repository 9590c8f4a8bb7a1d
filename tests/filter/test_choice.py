"""What users ask for: tags or SQL92."""

from __future__ import annotations

import pytest

from sprocket.base.errors import SubscriptionInvalid, UsageError
from sprocket.filter.choice import filter_of


def test_without_anything_all_messages_are_wanted() -> None:
    found = filter_of("*")
    assert (found.kind, found.expression, found.is_all) == ("TAG", "*", True)
    assert found.matches({})


def test_tags_and_conditions_judge_properties() -> None:
    tags, sql = filter_of("a || b"), filter_of("*", "n > 5 AND TAGS = 'a'")
    assert (tags.kind, sql.kind) == ("TAG", "SQL92")
    assert (sql.expression, sql.is_all, sql.tags, sql.codes) == (
        "n > 5 AND TAGS = 'a'", False, (), frozenset(),
    )  # fmt: skip
    for properties, by_tag, by_sql in [
        ({"TAGS": "a", "n": "6"}, True, True),
        ({"TAGS": "b", "n": "6"}, True, False),
        ({"n": "6"}, False, False),
        ({"TAGS": "c"}, False, False),
    ]:
        assert (tags.matches(properties), sql.matches(properties)) == (by_tag, by_sql)


def test_both_at_once_and_what_cannot_be_read_are_refused() -> None:
    with pytest.raises(UsageError, match="one of them"):
        filter_of("a", "n > 5")
    with pytest.raises(SubscriptionInvalid, match="column 4"):
        filter_of("*", "n >")
    with pytest.raises(SubscriptionInvalid, match="column 1"):
        filter_of("*", "")
    with pytest.raises(SubscriptionInvalid, match="no tag"):
        filter_of("||")
