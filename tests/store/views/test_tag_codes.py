"""What queue entries hold for filters."""

from __future__ import annotations

import pytest

from sprocket.base.errors import ConfigError
from sprocket.message.hashing import tag_code
from sprocket.message.topic import SCHEDULE
from sprocket.store.views.tag_codes import TagCodes, parse_delay_levels

CODES = TagCodes(parse_delay_levels("1s 5s 2m"))


def code(topic: str = "orders", **properties: str) -> int:
    return CODES.of(topic, 1_000_000, properties)


def test_a_tag_gives_its_hash_and_none_gives_zero() -> None:
    assert code(TAGS="paid") == tag_code("paid")
    assert code(KEYS="k") == 0
    assert code() == 0


@pytest.mark.parametrize(
    ("level", "delay_ms"), [("1", 1000), ("3", 120_000), ("4", 120_000), ("99", 120_000)]
)
def test_a_delayed_message_gives_its_due_time(level: str, delay_ms: int) -> None:
    assert code(SCHEDULE, DELAY=level, TAGS="paid") == 1_000_000 + delay_ms


@pytest.mark.parametrize("level", ["0", "-1", "abc", ""])
def test_a_level_that_delays_nothing_leaves_the_tag(level: str) -> None:
    assert code(SCHEDULE, DELAY=level, TAGS="paid") == tag_code("paid")


def test_a_delay_in_another_topic_is_no_due_time() -> None:
    assert code(DELAY="1", TAGS="paid") == tag_code("paid")


def test_levels_are_read_with_their_units() -> None:
    assert parse_delay_levels("1s 2m  3h 4d") == [1000, 120_000, 10_800_000, 345_600_000]
    assert parse_delay_levels("") == []


@pytest.mark.parametrize("text", ["1", "s", "1x", "1.5s", "-1s", "1s 2"])
def test_other_words_are_no_delays(text: str) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        parse_delay_levels(text)
