"""The report of a pipeline as one value, which becomes an HTML page, JSON or console lines.

All three show the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sprocket.plots.options import LINES_MAX, bar_options, line_options
from sprocket.spark.pipelines.parts.page import NOTHING, Figure, escaped, page, table

#: Heights in pixels: of lines over time, and of a bar with its distance to the next.
_LINES_HEIGHT, _BAR_HEIGHT = 300, 24


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        note: a remark below the table, such as how many rows are left out.
    """

    title: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Rows as objects."""
        keys = [_key(heading) for heading in self.headings]
        return {"rows": [dict(zip(keys, row, strict=True)) for row in self.rows]}

    def html(self) -> str:
        """An HTML table; numbers are aligned to the right."""
        return table(self.headings, (tuple(map(_cell, row)) for row in self.rows))


@dataclass(frozen=True)
class Lines:
    """Values over time, a line for each name.

    Attributes:
        unit: unit of the values.
        lines: for each name, pairs of time (ms since 1970 UTC) and value, in order.
    """

    title: str
    unit: str
    lines: Mapping[str, Sequence[tuple[int, float]]]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The points."""
        return {"unit": self.unit, "lines": {name: list(one) for name, one in self.lines.items()}}

    def html(self) -> str | Figure:
        """A plot of the first eight lines that have points."""
        named = list(self.lines.items())[:LINES_MAX]
        lines = {
            name: [(time, value if math.isfinite(value) else None) for time, value in points]
            for name, points in named
            if points
        }
        if not lines:
            return NOTHING
        values = {name: dict(points) for name, points in lines.items()}
        times = sorted({time for points in values.values() for time in points})
        rows = [(moment(time), *(values[name].get(time) for name in lines)) for time in times]
        return Figure(
            line_options(lines, is_utc=True),
            _LINES_HEIGHT,
            f"{self.title}: {self.unit} over time",
            Table("", ("UTC", *lines), rows).html(),
        )


@dataclass(frozen=True)
class Bars:
    """A value for each name."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The values."""
        return {"unit": self.unit, "bars": [{"name": n, "value": v} for n, v in self.bars]}

    def html(self) -> str | Figure:
        """A plot of the values that a bar can show."""
        bars = [(name, value) for name, value in self.bars if math.isfinite(value) and value >= 0]
        if not bars:
            return NOTHING
        return Figure(
            bar_options(bars, unit=self.unit),
            _BAR_HEIGHT * len(bars) + 12,
            f"{self.title}: {self.unit} by name",
            Table("", ("name", self.unit), bars).html(),
        )


Section = Table | Lines | Bars


@dataclass(frozen=True)
class Report:
    """A title, single values, and sections with tables and plots.

    Attributes:
        facts: single values by name.
    """

    title: str
    facts: Mapping[str, Any]
    sections: tuple[Section, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The facts by name, with `_` for blanks, and the sections in order."""
        found: dict[str, Any] = {_key(name): value for name, value in self.facts.items()}
        found["sections"] = [
            {"title": one.title, **one.as_json(), **({"note": one.note} if one.note else {})}
            for one in self.sections
        ]
        return {"report": self.title, **found}

    def html(self, *, now_ms: int | None = None, script: str | None = None) -> str:
        """A whole page.

        Args:
            now_ms: time to print on the page, ms since 1970; None for no time.
            script: that of ECharts, which draws the plots; None for figures instead of plots.
        """
        body: list[str | Figure] = []
        if now_ms is not None:
            body.append(f'<p class="note">{moment(now_ms)} UTC</p>')
        body.append(Table("", ("what", "value"), tuple(self.facts.items())).html())
        for one in self.sections:
            body += [f"<h2>{escaped(one.title)}</h2>", one.html()]
            if isinstance(one, Lines):
                body.append(f'<p class="note">{escaped(one.unit)}, times in UTC</p>')
            if one.note:
                body.append(f'<p class="note">{escaped(one.note)}</p>')
        return "\n".join(page(self.title, body, script=script)) + "\n"

    @property
    def has_plots(self) -> bool:
        """Whether its page has something to plot."""
        return any(isinstance(one.html(), Figure) for one in self.sections)


def moment(ms: int | None) -> str | None:
    """A time (ms since 1970) as text for people, UTC."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def plain(value: Any) -> str:
    """A value as text for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return str(value)


def _key(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_")


def _cell(value: Any) -> tuple[str, bool]:
    return plain(value), isinstance(value, int | float) and not isinstance(value, bool)
