"""When a file of the log goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sprocket.base.errors import ConfigError
from sprocket.store.config import StoreConfig
from sprocket.store.writing.retention import DeletionReason, RetentionRules, parse_hours

HOUR_MS = 3_600_000
NOW_MS = 1000 * HOUR_MS
RULES = RetentionRules.of(StoreConfig())


def verdict(
    *, age_hours: float, hour: int = 12, used: float = 10.0, rules: RetentionRules = RULES
) -> DeletionReason | None:
    newest_ms = NOW_MS - int(age_hours * HOUR_MS)
    return rules.verdict(newest_ms, now_ms=NOW_MS, hour=hour, used_percent=used)


def test_the_settings_are_those_of_rocketmq() -> None:
    assert RetentionRules(72 * HOUR_MS, frozenset({4}), 75, 85, 90, 0, 10) == RULES


@pytest.mark.parametrize(
    ("age_hours", "hour", "used", "expected"),
    [
        (72, 4, 10.0, DeletionReason.EXPIRED),
        (71.9, 4, 10.0, None),
        (9999, 5, 75.0, None),
        (72, 5, 75.1, DeletionReason.EXPIRED),
        (71.9, 5, 85.0, None),
        (0, 5, 85.1, DeletionReason.FORCED),
        (72, 5, 99.0, DeletionReason.EXPIRED),
        (-5, 4, 50.0, None),
    ],
)
def test_a_file_goes_at_its_hour_or_when_there_is_no_room(
    age_hours: float, hour: int, used: float, expected: DeletionReason | None
) -> None:
    assert verdict(age_hours=age_hours, hour=hour, used=used) is expected


def test_nothing_is_forced_out_if_that_is_not_wanted() -> None:
    rules = RetentionRules.of(StoreConfig(may_force=False))
    assert verdict(age_hours=1, used=100.0, rules=rules) is None
    assert verdict(age_hours=72, used=100.0, rules=rules) is DeletionReason.EXPIRED


def test_a_disk_is_full_from_the_warning_level_on() -> None:
    assert [RULES.is_full(used) for used in (89.9, 90.0, 100.0)] == [False, True, True]


def test_there_may_be_several_hours() -> None:
    assert parse_hours("04;16; 0,23") == {0, 4, 16, 23}
    for text in ("", "24", "4am", "-1", "04;;05"):
        with pytest.raises(ConfigError, match="deleteWhen"):
            RetentionRules.of(replace(StoreConfig(), delete_hours=text))


def test_files_that_are_too_many_bytes_together_go_whatever_their_age() -> None:
    rules = RetentionRules.of(StoreConfig(log_bytes_max=4 << 30))
    ask = {"newest_ms": NOW_MS, "now_ms": NOW_MS, "hour": 12, "used_percent": 10.0}
    assert rules.verdict(**ask, log_bytes=4 << 30) is None  # type: ignore[arg-type]
    assert rules.verdict(**ask, log_bytes=5 << 30) is DeletionReason.TOO_MUCH  # type: ignore[arg-type]
    assert RULES.verdict(**ask, log_bytes=5 << 50) is None  # type: ignore[arg-type]
