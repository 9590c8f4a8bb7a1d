"""Numbers, sizes and times as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
#: Seconds of each unit of a duration, the largest first.
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
NOTHING = "–"


def count_text(count: float | None) -> str:
    """A whole number with its thousands apart, such as `12 345`."""
    return NOTHING if count is None else f"{round(count):,}".replace(",", "\u202f")


def counted(count: int, one: str, several: str) -> str:
    """A count with its noun, such as `1 broker`."""
    return f"{count_text(count)} {one if count == 1 else several}"


def rate_text(per_second: float | None) -> str:
    """A rate in messages per second: exact where it is small."""
    if per_second is None:
        return NOTHING
    return f"{count_text(per_second) if per_second >= 10 else f'{per_second:.3g}'}/s"


def size_text(size: float | None) -> str:
    """A size in bytes with a binary unit, such as `1.5 MiB`."""
    if size is None:
        return NOTHING
    unit = 0
    while size >= 1_024 and unit < len(_SIZES) - 1:
        size /= 1_024
        unit += 1
    return (
        f"{size:.0f} {_SIZES[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_SIZES[unit]}"
    )


def percent_text(share: float | None) -> str:
    """A share of 1 in percent."""
    return NOTHING if share is None else f"{share * 100:.0f}\u202f%"


def span_text(seconds: float) -> str:
    """A duration by its largest unit, such as `3 min`."""
    whole = int(max(seconds, 0))
    for length, unit in _SPANS:
        if whole >= length:
            return f"{whole // length} {unit}"
    return "0 s"


def ago_text(time: datetime | None, now_ms: int) -> str:
    """How long ago a time was; a time to come as `in …`; nothing for none."""
    if time is None:
        return NOTHING
    seconds = now_ms / 1_000 - time.timestamp()
    if seconds < -1:
        return f"in {span_text(-seconds)}"
    return "now" if seconds < 1 else f"{span_text(seconds)} ago"


def moment_text(time: datetime | None) -> str:
    """A time in UTC to the ms."""
    if time is None:
        return NOTHING
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{time.microsecond // 1_000:03d} UTC"
