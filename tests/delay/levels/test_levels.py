"""The fixed delays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.hashing import tag_code
from sprocket.message.properties import DELAY, TAGS
from sprocket.store.config import StoreConfig

VECTORS = Path(__file__).resolve().parents[2] / "golden" / "vectors" / "delay_levels.json"


def test_the_default_levels_are_rocketmqs() -> None:
    levels = DelayLevels.parse(StoreConfig().delay_levels)
    table = json.loads(VECTORS.read_text())
    assert levels.highest == len(table) == 18
    for row in table:
        assert levels.delay_ms(row["level"]) == row["ms"]
        assert levels.queue_of(row["level"]) == row["queueIdInScheduleTopic"]


def test_a_level_above_the_highest_is_the_highest() -> None:
    levels = DelayLevels.parse("1s 2m")
    assert [levels.clamp(level) for level in (1, 2, 3, 99)] == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("level", "delay_ms"), [("1", 1000), ("3", 120_000), ("4", 120_000), ("99", 120_000)]
)
def test_the_entry_of_a_delayed_message_holds_its_due_time(level: str, delay_ms: int) -> None:
    levels = DelayLevels.parse("1s 5s 2m")
    assert levels.tag_code(1_000_000, {DELAY: level, TAGS: "paid"}) == 1_000_000 + delay_ms


@pytest.mark.parametrize("level", ["0", "-1", "abc", ""])
def test_a_level_that_delays_nothing_leaves_the_tag(level: str) -> None:
    levels = DelayLevels.parse("1s 5s 2m")
    assert levels.tag_code(1_000_000, {DELAY: level, TAGS: "paid"}) == tag_code("paid")
    assert levels.tag_code(1_000_000, {TAGS: "paid"}) == tag_code("paid")


def test_levels_are_read_with_their_units() -> None:
    levels = DelayLevels.parse("1s 2m  3h 4d")
    found = [levels.delay_ms(level) for level in range(1, levels.highest + 1)]
    assert found == [1000, 120_000, 10_800_000, 345_600_000]


@pytest.mark.parametrize("text", ["1", "s", "1x", "1.5s", "-1s", "1s 2"])
def test_other_words_are_no_delays(text: str) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        DelayLevels.parse(text)


@pytest.mark.parametrize("text", ["", "5", "s", "1x", "1s two"])
def test_what_is_no_list_of_delays_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        DelayLevels.parse(text)
