"""Values with their origins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sprocket.base.config import Conflict, setting, settings_of
from sprocket.base.errors import ConfigError
from sprocket.base.loaded_config import LoadedConfig


@dataclass(frozen=True)
class HatchConfig:
    """A part that only this test has."""

    low: int = setting(0, "")
    high: int = setting(9, "", maximum=99)
    wait_ms: int = setting(3_000, "")

    def conflicts(self) -> Iterator[Conflict]:
        """What does not go together."""
        if self.low > self.high:
            yield Conflict(("low", "high"), f"is above high, {self.high}")

    def remarks(self) -> Iterator[str]:
        """What to know."""
        if self.low:
            yield "low is not 0"


LOW, HIGH, WAIT = settings_of(HatchConfig).values()


def test_a_conflict_has_the_place_of_what_was_set() -> None:
    loaded = LoadedConfig([HatchConfig])
    loaded.set(LOW, 10, "f:1")
    with pytest.raises(ConfigError, match=r"^f:1: hatch\.low is above high, 9$"):
        loaded.make()


def test_a_conflict_with_a_value_that_is_wrong_itself_is_not_reported() -> None:
    loaded = LoadedConfig([HatchConfig])
    loaded.set(LOW, 10, "f:1")
    loaded.set(HIGH, 100, "f:2", "theHigh")
    with pytest.raises(ConfigError, match=r"^f:2: theHigh \(hatch\.high\) is at most 99, not 100$"):
        loaded.make()


def test_what_goes_together_is_built_with_its_remarks() -> None:
    loaded = LoadedConfig([HatchConfig])
    loaded.set(LOW, 1, "f:1")
    loaded.make()
    assert loaded.of(HatchConfig) == loaded.of_part("hatch") == HatchConfig(1)
    assert loaded.notes == ["low is not 0"]


def test_a_number_that_is_probably_in_another_unit_is_a_note() -> None:
    loaded = LoadedConfig([HatchConfig])
    loaded.set(WAIT, 3, "f:3")
    assert loaded.notes == ["f:3: hatch.wait_ms is 3 ms: the unit is milliseconds, not seconds"]
