"""Reads and shows times on the command line."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import Literal

from sprocket.base.errors import UsageError
from sprocket.message.offsets import LONG_MAX

_AGO = re.compile(r"(\d{1,9})([smhd])")
_AGO_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
#: A time of day, as `strptime` reads it.
CLOCK = "%H:%M"
#: The date that `strptime` gives to a time without a date.
_NO_DAY = datetime.strptime("00:00", CLOCK).date()
_UNITS_S = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def start_at(text: str, now_ms: int) -> Literal["first", "last"] | int:
    """The start that a text names: `first`, `last`, or ms since 1970 UTC.

    A time without a zone is local: a person at this machine wrote it. Programs name the zone.

    Raises:
        UsageError: the text is neither a word nor a time, or it is in seconds since 1970.
    """
    if text in ("first", "last"):
        return text  # type: ignore[return-value]  # mypy does not narrow by a tuple
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _AGO_MS[ago[2]])
    if re.fullmatch(r"\d{1,15}", text):
        from sprocket.message.outgoing import check_milliseconds

        check_milliseconds(int(text))
        return int(text)
    try:
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"a time is first, last, like '2030-01-31 08:00', or like 15m (ago), not {text!r}"
        ) from None


def between(since: str | None, until: str | None) -> tuple[int, int]:
    """A range of times as ms since 1970 UTC; a side that is not given has no limit.

    Raises:
        UsageError: a text is not a time.
    """
    now_ms = int(time.time() * 1000)

    def at_ms(text: str) -> int:
        start = start_at(text, now_ms)
        return start if isinstance(start, int) else {"first": 0, "last": now_ms}[start]

    return (
        0 if since is None else at_ms(since),
        LONG_MAX if until is None else at_ms(until),
    )


def coming(given: datetime, now: datetime) -> datetime:
    """A given time with its zone; a time of day becomes its next occurrence.

    Args:
        now: the local time.
    """
    if given.date() != _NO_DAY:
        return given.astimezone()
    today = datetime.combine(now.date(), given.time())
    return (today if today > now else today + timedelta(days=1)).astimezone()


def moment(time_ms: int) -> str:
    """A time in the local zone, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "milliseconds")


def length(seconds: int) -> str:
    """A duration in its largest whole unit."""
    unit, name = next((unit, name) for unit, name in _UNITS_S if seconds % unit == 0)
    return f"{seconds // unit} {name}"
