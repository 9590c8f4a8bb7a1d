"""The report of a pipeline, on the console and as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sprocket.cli import render

if TYPE_CHECKING:
    from sprocket.spark.pipelines.parts.report import Report

#: Rows of a table that are shown on a console; the HTML page and JSON have all.
_ROWS_SHOWN = 40


def write(report: Report, path: Path) -> None:
    """Writes the page, with plots where the library for them is installed, and says so if not."""
    import time

    from sprocket.plots.echarts import echarts_script
    from sprocket.spark.pipelines.parts.page import WITHOUT_PLOTS

    script = echarts_script()
    page = report.html(now_ms=int(time.time() * 1000), script=script)
    path.write_text(page, encoding="utf-8")
    if script is None and report.has_plots:
        typer.echo(f"sprocket: {path} has tables instead of plots; {WITHOUT_PLOTS}", err=True)


def show(report: Report) -> None:
    """Prints facts and tables; plots are only in the HTML page."""
    from sprocket.spark.pipelines.parts.page import printable
    from sprocket.spark.pipelines.parts.report import Table, plain

    width = max(map(len, report.facts), default=0)
    for name, value in report.facts.items():
        typer.echo(f"{name.ljust(width)}  {printable(plain(value))}")
    for one in report.sections:
        if not isinstance(one, Table) or not one.rows:
            continue
        typer.echo()
        typer.secho(one.title, bold=True)
        rows = [tuple(_cell(cell) for cell in row) for row in one.rows[:_ROWS_SHOWN]]
        render.table(one.headings, rows)
        if left_out := len(one.rows) - len(rows):
            typer.echo(f"… and {left_out} more (--json and --report have them)")


def _cell(value: Any) -> Any:
    from sprocket.spark.pipelines.parts.page import printable

    return printable(value) if isinstance(value, str) else value
