"""The names of lite topics, and the place of a record in one."""

from __future__ import annotations

import pytest

from sprocket.message.lite import LiteName, fault_of_lite_topic, place_of
from sprocket.message.properties import encode


def test_a_queue_has_the_name_that_rocketmq_gives_it() -> None:
    name = LiteName("parent", "lite-1")
    assert name.queue == "%LMQ%$parent$lite-1"
    assert LiteName.of_queue(name.queue) == name


@pytest.mark.parametrize(
    "queue", ["parent", "%LMQ%parent", "%LMQ%$parent", "%LMQ%$a$b$c", "%LMQ%$$b", "%LMQ%$a$"]
)
def test_other_queues_are_none_of_lite_topics(queue: str) -> None:
    assert LiteName.of_queue(queue) is None


@pytest.mark.parametrize(("name", "is_valid"), [
    ("a", True), ("A_b-9", True), ("x" * 64, True), ("x" * 65, False), ("", False), (" ", False),
    ("a b", False), ("a$b", False), ("ä", False), ("a\n", False), ("a\x01", False),
])  # fmt: skip
def test_names_of_lite_topics(name: str, is_valid: bool) -> None:
    assert (not fault_of_lite_topic(name)) is is_valid


@pytest.mark.parametrize(("queue", "offset", "is_there"), [
    ("%LMQ%$t$a", "7", True), ("%LMQ%$u$a", "7", False), ("%LMQ%$t$a", "-1", False),
    ("%LMQ%$t$a", "x", False), ("%LMQ%$t$a", "9" * 20, False), ("t", "7", False),
    ("%LMQ%$t$a,%LMQ%$t$b", "7,8", False),
])  # fmt: skip
def test_a_record_is_in_a_lite_topic_of_its_own_topic_only(
    queue: str, offset: str, is_there: bool
) -> None:
    properties = {"INNER_MULTI_DISPATCH": queue, "INNER_MULTI_QUEUE_OFFSET": offset}
    place = place_of("t", encode(properties).encode())
    assert (place is not None) is is_there
    if place is not None:
        assert place == (("t", "a"), 7)
