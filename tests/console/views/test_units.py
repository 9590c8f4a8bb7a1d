"""Numbers, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sprocket.console.views import units


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "–"), (0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (200 * 2**20, "200 MiB"),
     (2**70, "1048576 PiB")],
)  # fmt: skip
def test_sizes_have_binary_units(size: float | None, text: str) -> None:
    assert units.size_text(size) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "–"), (0, "0/s"), (0.0312, "0.0312/s"), (9.5, "9.5/s"), (12_345.6, "12\u202f346/s")],
)
def test_rates_are_exact_where_they_are_small(rate: float | None, text: str) -> None:
    assert units.rate_text(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "now"), (59, "59 s ago"), (61, "1 min ago"), (7_300, "2 h ago"), (200_000, "2 d ago"),
     (-90, "in 1 min")],
)  # fmt: skip
def test_times_are_told_by_how_long_ago_they_were(seconds: float, text: str) -> None:
    assert units.ago_text(datetime.fromtimestamp(1_000_000 - seconds, UTC), 1_000_000_000) == text


def test_a_moment_is_in_utc_to_the_ms() -> None:
    time = datetime.fromisoformat("2030-01-31T08:00:00.123456+02:00")
    assert units.moment_text(time) == "2030-01-31 06:00:00.123 UTC"
    assert units.moment_text(None) == "–"
    assert units.percent_text(0.756) == "76\u202f%"
    assert units.count_text(1_234_567) == "1\u202f234\u202f567"
