"""The report of a pipeline as one value, which becomes an HTML page, JSON or console lines.

All three show the same figures. A page needs nothing else: it loads no script, font or picture, and
texts from messages are always escaped in it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sprocket.spark.pipelines.parts import plot


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
        head = "".join(f"<th>{_text(heading)}</th>" for heading in self.headings)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


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

    def html(self) -> str:
        """A plot."""
        return plot.lines(self.lines, unit=self.unit)


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

    def html(self) -> str:
        """A plot."""
        return plot.bars(self.bars, unit=self.unit)


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

    def html(self, *, now_ms: int | None = None) -> str:
        """A whole page.

        Args:
            now_ms: time to print on the page, ms since 1970; None for no time.
        """
        return "\n".join(self._lines(now_ms)) + "\n"

    def _lines(self, now_ms: int | None) -> Iterator[str]:
        yield "<!doctype html>"
        yield '<html lang="en"><head><meta charset="utf-8">'
        yield (
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        )
        yield f"<title>{_text(self.title)}</title><style>{_STYLE}</style></head><body>"
        yield f"<h1>{_text(self.title)}</h1>"
        if now_ms is not None:
            yield f'<p class="note">{moment(now_ms)} UTC</p>'
        facts = Table("", ("what", "value"), tuple(self.facts.items()))
        yield facts.html()
        for one in self.sections:
            yield f"<h2>{_text(one.title)}</h2>"
            yield one.html()
            if one.note:
                yield f'<p class="note">{_text(one.note)}</p>'
        yield "</body></html>"


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


def _cell(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{' class=number' if is_number else ''}>{_text(plain(value))}</td>"


def _text(value: str) -> str:
    return html.escape(plot.printable(value))


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left;
  border-bottom: 1px solid #e4e7eb; vertical-align: top; overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.note { color: #5b6570; font-size: .9rem; } svg { max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #1b1f24; }
"""
