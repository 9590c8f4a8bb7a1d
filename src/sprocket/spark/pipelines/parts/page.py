"""The HTML page of a report: one file that opens anywhere and needs nothing from elsewhere. Pure.

Plots are drawn by ECharts, whose script the page carries. Each plot has its figures in a table
beside it, which is shown instead of the plot where the script is absent or not run.

Texts come from messages. They are escaped wherever they stand, and the page's policy lets its own
two scripts run, by their hashes, and no other; it loads nothing and sends nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

WITHOUT_PLOTS = "for plots: pip install 'sprocketmq[reports]', and run it again"
#: What stands for a plot without values.
NOTHING = '<p class="note">nothing to plot</p>'


class Figure(NamedTuple):
    """A plot.

    Attributes:
        options: ECharts'.
        height: in pixels.
        label: what the plot shows, for those who do not see it.
        table: its figures as an HTML table.
    """

    options: dict[str, Any]
    height: int
    label: str
    table: str


def printable(text: str) -> str:
    """The text with U+FFFD for each control character, since a page may have none."""
    return "".join(one if one.isprintable() or one == " " else "\ufffd" for one in text)


def escaped(text: str) -> str:
    """The text for an HTML page, as content or in a quoted attribute."""
    return html.escape(printable(text))


def table(headings: Sequence[str], rows: Iterable[Sequence[tuple[str, bool]]]) -> str:
    """An HTML table.

    Args:
        rows: cells as text, and whether they are numbers, which are aligned to the right.
    """
    head = "".join(f"<th>{escaped(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def page(title: str, body: Sequence[str | Figure], *, script: str | None) -> Iterator[str]:
    """The lines of a page.

    Args:
        body: parts as HTML, and plots.
        script: ECharts'; None for figures instead of plots.
    """
    figures = [one for one in body if isinstance(one, Figure)]
    scripts = [script, _DRAW] if script is not None and figures else []
    allowed = " ".join(f"'sha256-{_hash(one)}'" for one in scripts) or "'none'"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; script-src {allowed}\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escaped(title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{escaped(title)}</h1>"
    for one in body:
        yield _figure(one) if isinstance(one, Figure) else one
    if figures and not scripts:
        yield f'<p class="note">{escaped(WITHOUT_PLOTS)}</p>'
    if scripts:
        yield f'<script type="application/json" id="plots">{_data(figures)}</script>'
        yield from (f"<script>{one}</script>" for one in scripts)
    yield "</body></html>"


def _figure(one: Figure) -> str:
    label = escaped(one.label)
    return (
        f'<figure><div class="plot" role="img" aria-label="{label}" '
        f'style="height:{one.height}px" hidden></div>\n'
        f"<details open><summary>The figures</summary>\n{one.table}</details></figure>"
    )


def _data(figures: Sequence[Figure]) -> str:
    """The options of all plots as JSON in which no character means anything to HTML."""
    text = json.dumps([_printed(one.options) for one in figures], allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _printed(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _printed(one) for name, one in value.items()}
    return [_printed(one) for one in value] if isinstance(value, list | tuple) else value


def _cell(cell: tuple[str, bool]) -> str:
    text, is_number = cell
    return f"<td{' class=number' if is_number else ''}>{escaped(text)}</td>"


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


#: Each plot is drawn for itself: what fails leaves its figures open.
_DRAW = """
const plots = [...document.querySelectorAll(".plot")];
JSON.parse(document.getElementById("plots").textContent).forEach((options, at) => {
  const plot = plots[at];
  plot.hidden = false;
  try {
    const drawn = echarts.init(plot, null, {renderer: "svg"});
    drawn.setOption(options);
    new ResizeObserver(() => drawn.resize()).observe(plot);
    plot.parentElement.querySelector("details").open = false;
  } catch (error) {
    plot.hidden = true;
    console.error(error);
  }
});
"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #e4e7eb; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #97a1ab; --line: #2d343b; --page: #14181c; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left;
  border-bottom: 1px solid var(--line); vertical-align: top; }
td { min-width: 4rem; max-width: 26rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.note, summary { color: var(--soft); font-size: .9rem; } summary { cursor: pointer; }
figure { margin: 1rem 0; } .plot { width: 100%; }
"""
