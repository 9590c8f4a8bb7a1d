"""Names of topics and groups."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.message import topic


@pytest.mark.parametrize("name", ["orders", "a" * 127, "%RETRY%g", "A-b_c%|9"])
def test_usual_names_are_taken(name: str) -> None:
    topic.check_topic(name)


@pytest.mark.parametrize("name", ["", "  ", "a" * 128, "a.b", "a b", "a/b", "ä", "a\n"])
def test_other_names_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(UsageError, match="specified topic"):
        topic.check_topic(name)


@pytest.mark.parametrize("name", ["", "a" * 256, "a!"])
def test_groups_have_rules_of_their_own(name: str) -> None:
    with pytest.raises(UsageError, match="specified group"):
        topic.check_group(name)
    topic.check_group("a" * 255)


def test_a_consumer_group_fits_into_the_name_of_its_retry_topic() -> None:
    assert topic.fault_of_consumer_group("a" * 120) is None
    assert topic.fault_of_topic(topic.retry_topic("a" * 120)) is None
    assert "at most 120" in (topic.fault_of_consumer_group("a" * 121) or "")
    assert topic.fault_of_consumer_group(" ") == topic.fault_of_group(" ")


def test_the_group_stands_in_its_retry_and_dead_letter_topic() -> None:
    assert topic.group_of(topic.retry_topic("g")) == "g"
    assert topic.group_of(topic.dead_letter_topic("g")) == "g"
    assert topic.group_of("g") is None
    assert topic.is_retry_topic("%RETRY%g")
    assert not topic.is_retry_topic("%DLQ%g")
    assert topic.is_dead_letter_topic("%DLQ%g")


def test_permissions_are_three_bits() -> None:
    assert topic.permission_text(topic.READ | topic.WRITE) == "RW-"
    assert topic.permission_text(0) == "---"
    assert topic.is_readable(4)
    assert not topic.is_writable(4)
    assert topic.is_inherited(7)
