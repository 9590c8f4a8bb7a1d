"""The fixed delays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.delay.levels.levels import DelayLevels
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


@pytest.mark.parametrize("text", ["", "5", "s", "1x", "1s two"])
def test_what_is_no_list_of_delays_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        DelayLevels.parse(text)
