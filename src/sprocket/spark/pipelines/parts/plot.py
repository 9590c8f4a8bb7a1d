"""Draws plots as inline SVG: lines over time, and bars. Pure.

Reports need only these two kinds; a plotting library would be larger than the rest of a pipeline.
Names come from messages, so they are cut and escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

WIDTH, HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 12, 34
_BAR, _NAME_WIDTH = 22, 260
_NAME_LENGTH_MAX = 40
#: A shorter axis is not divided: a float has no power of ten that is small enough.
_SPAN_MIN = 1e-300
#: Colours that colour-blind people can distinguish, too.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#4d4d4d",
)  # fmt: skip
LINES_MAX = len(COLOURS)


def printable(text: str) -> str:
    """The text with U+FFFD for each control character, since a page may have none."""
    return "".join(one if one.isprintable() or one == " " else "\ufffd" for one in text)


def ticks(low: float, high: float, *, count: int = 5) -> list[float]:
    """About `count` round numbers at equal steps that enclose `low` and `high`."""
    span = high - low
    if not math.isfinite(span) or span < _SPAN_MIN:
        return [low, low + 1]
    rough = span / count
    step = 10 ** math.floor(math.log10(rough))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= rough)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    return [number * step for number in range(first, last + 1)]


def lines(series: Mapping[str, Sequence[tuple[int, float]]], *, unit: str) -> str:
    """A plot with a line over time (ms since 1970 UTC) for each of the first eight names."""
    shown = {name: points for name, points in list(series.items())[:LINES_MAX] if points}
    if not shown:
        return _empty()
    times = [time for points in shown.values() for time, _ in points]
    first, last = min(times), max(times)
    marks = ticks(0, max(value for points in shown.values() for _, value in points))
    plot = _Plane(first, max(last, first + 1), marks[0], marks[-1])
    height = HEIGHT + 18 * len(shown)
    parts = [_open(height, f"{unit} over time")]
    parts += _value_ticks(plot, marks, unit)
    parts += _time_ticks(plot, first, last)
    for at, (name, points) in enumerate(shown.items()):
        parts += _line(plot, points, COLOURS[at])
        y = HEIGHT + 18 * at + 8
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="14" height="10" fill="{COLOURS[at]}"/>')
        parts.append(_label(_LEFT + 22, y, name))
    return "".join([*parts, "</svg>"])


def bars(values: Sequence[tuple[str, float]], *, unit: str) -> str:
    """A plot with a bar for each name, one below the other."""
    shown = [(name, value) for name, value in values if math.isfinite(value) and value >= 0]
    if not shown:
        return _empty()
    highest = max(value for _, value in shown) or 1
    width = WIDTH - _NAME_WIDTH - 110
    parts = [_open(_BAR * len(shown) + 8, unit)]
    for at, (name, value) in enumerate(shown):
        y = 4 + at * _BAR
        length = width * value / highest
        parts.append(_label(_NAME_WIDTH - 8, y + 14, name, anchor="end"))
        parts.append(
            f'<rect x="{_NAME_WIDTH}" y="{y}" width="{length:.1f}" height="{_BAR - 5}" '
            f'fill="{COLOURS[0]}"/>'
        )
        parts.append(_label(_NAME_WIDTH + length + 6, y + 14, f"{number(value)} {unit}"))
    return "".join([*parts, "</svg>"])


def number(value: float) -> str:
    """A number with few digits: 1.5k, 20M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


class _Plane:
    """Maps times and values to positions on the page."""

    def __init__(self, first: float, last: float, low: float, high: float) -> None:
        self._first, self._low = first, low
        self._by_x = (WIDTH - _LEFT - _RIGHT) / (last - first)
        self._by_y = (HEIGHT - _TOP - _BOTTOM) / (high - low)

    def x(self, time: float) -> float:
        return _LEFT + (time - self._first) * self._by_x

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (value - self._low) * self._by_y


def _line(plot: _Plane, points: Sequence[tuple[int, float]], colour: str) -> Iterator[str]:
    places = [(plot.x(time), plot.y(value)) for time, value in points]
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    if len(places) <= 60:
        for x, y in places:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>'


def _value_ticks(plot: _Plane, marks: Sequence[float], unit: str) -> Iterator[str]:
    for mark in marks:
        y = plot.y(mark)
        yield (
            f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e7eb"/>'
        )
        yield _label(_LEFT - 6, y + 4, number(mark), anchor="end")
    yield _label(_LEFT, _TOP - 1, unit)


def _time_ticks(plot: _Plane, first: int, last: int) -> Iterator[str]:
    is_one_day = last - first < 86_400_000
    shape = "%H:%M:%S" if is_one_day else "%m-%d %H:%M"
    before = ""
    for part in range(6):
        time = first + (last - first) * part / 5
        text = datetime.fromtimestamp(time / 1000, UTC).strftime(shape)
        if text != before:  # a short span has fewer seconds than marks
            anchor = "end" if part == 5 else "middle"  # the last one ends with the plot
            yield _label(plot.x(time), HEIGHT - _BOTTOM + 18, text, anchor=anchor)
        before = text


def _label(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    name = printable(text)
    if len(name) > _NAME_LENGTH_MAX:
        name = f"{name[: _NAME_LENGTH_MAX - 1]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(name)}</text>'


def _open(height: int, what: str) -> str:
    label = html.escape(printable(what))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{label}">'
    )


def _empty() -> str:
    return '<p class="note">nothing to plot</p>'
