"""Times on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli.times import CLOCK, between, coming, length, moment, start_at
from sprocket.client.base.arguments import moment_ms
from sprocket.client.group.offsets import StartPosition
from sprocket.message.message import Message
from sprocket.message.outgoing import text_of
from sprocket.spark.options import positions

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


def test_seconds_since_1970_are_no_time() -> None:
    with pytest.raises(UsageError, match="looks like seconds"):
        start_at("1700000000", NOW_MS)


#: Everything that takes a point in time in a program, called with a time.
IN_PROGRAMS: dict[str, Callable[[datetime], object]] = {
    "deliver_at": lambda at: text_of(Message("t", b"x", deliver_at=at)),
    "start": StartPosition.of,
    "offset_at, seek_to_time": moment_ms,
}


@pytest.mark.parametrize("take", IN_PROGRAMS.values(), ids=list(IN_PROGRAMS))
def test_a_program_names_the_zone_of_a_time(take: Callable[[datetime], object]) -> None:
    take(datetime(2030, 1, 31, 8, tzinfo=UTC))
    with pytest.raises(UsageError, match="has no time zone"):
        take(datetime(2030, 1, 31, 8))


def test_an_option_of_spark_takes_no_time_without_a_zone() -> None:
    positions.parse_time("startingTimestamp", "1896076800000")
    with pytest.raises(UsageError, match="takes ms since 1970"):
        positions.parse_time("startingTimestamp", "2030-01-31 08:00")


def test_a_time_without_a_zone_is_local_on_the_command_line() -> None:
    local = datetime(2030, 1, 31, 8).astimezone()
    assert start_at("2030-01-31 08:00", NOW_MS) == int(local.timestamp() * 1000)
    assert coming(datetime(2030, 1, 31, 8), datetime(2030, 1, 30)) == local
    elsewhere = datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert start_at("2030-01-31 08:00+00:00", NOW_MS) == int(elsewhere.timestamp() * 1000)


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
