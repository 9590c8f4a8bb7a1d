"""Times on the command line."""

from __future__ import annotations

from datetime import datetime

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli.times import CLOCK, between, coming, length, moment, start_at

NOW_MS = 1_900_000_000_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("first", "first"),
        ("last", "last"),
        ("15m", NOW_MS - 900_000),
        ("9999999d", 0),
        ("1234567890123", 1_234_567_890_123),
        ("2030-01-31T08:00:00+00:00", 1_896_076_800_000),
        ("1900-01-01T00:00:00+00:00", 0),
    ],
)
def test_a_beginning_is_a_word_a_time_or_how_long_ago(text: str, start: str | int) -> None:
    assert start_at(text, NOW_MS) == start


@pytest.mark.parametrize("text", ["", "never", "15x", "-5", "99999999999999999999"])
def test_other_beginnings_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a time is"):
        start_at(text, NOW_MS)


@pytest.mark.parametrize(("now", "day"), [("07:59", 30), ("08:00", 31), ("23:00", 31)])
def test_a_time_of_day_is_the_next_time_that_it_is(now: str, day: int) -> None:
    here = datetime.fromisoformat(f"2030-01-30 {now}")
    expected = datetime(2030, 1, day, 8).astimezone()
    assert coming(datetime.strptime("08:00", CLOCK), here) == expected
    whole = datetime.fromisoformat("2030-02-28 08:00:00+05:00")
    assert coming(whole, here) == whole


def test_a_side_without_a_time_has_no_bound() -> None:
    assert between(None, "1234") == (0, 1234)
    begin, end = between("first", "last")
    assert begin == 0 < end < between("1h", None)[1]


def test_a_moment_is_shown_to_the_millisecond() -> None:
    assert moment(1_234).split(".")[1][:3] == "234"


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s"), (300, "5 min"), (86_400, "1 d")])
def test_lengths_are_told_in_their_largest_unit(seconds: int, text: str) -> None:
    assert length(seconds) == text
