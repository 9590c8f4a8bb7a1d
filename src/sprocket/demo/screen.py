"""The demo's output on the console."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from sprocket.demo.events import DemoReport
from sprocket.demo.orders import STATUSES, TOPIC
from sprocket.demo.plan import GROUP, Plan, Result


class ProgressBars:
    """The two progress bars."""

    def __init__(self, progress: Progress, messages: int) -> None:
        self._progress = progress
        self._sent: TaskID = progress.add_task("orders sent", total=messages)
        self._billed: TaskID = progress.add_task(f"billed by group {GROUP}", total=messages)

    def sent(self, count: int) -> None:
        """Counts `count` more as sent."""
        self._progress.advance(self._sent, count)

    def billed(self, count: int) -> None:
        """Counts `count` more as consumed."""
        self._progress.advance(self._billed, count)


class Screen:
    """Shows the demo's progress and result on a console."""

    Show = Callable[[str], None]

    def __init__(self, console: Console) -> None:
        self._console = console

    def started(self, nameserver: str, broker: str, store: Path) -> None:
        """Shows that the node is running."""
        self._console.print(
            f"[bold]Sprocket[/] runs: name server {nameserver}, broker {broker}, store {store}/",
            highlight=False,
            soft_wrap=True,
        )

    @contextlib.contextmanager
    def bars(self, messages: int) -> Iterator[ProgressBars]:
        """Shows the progress of sending and consuming."""
        columns = (
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            yield ProgressBars(progress, messages)

    @contextlib.contextmanager
    def working(self) -> Iterator[Show]:
        """Shows the current step in a line with a spinner."""
        with self._console.status("waiting for Spark") as status:
            yield status.update

    def finished(self, result: Result, plan: Plan) -> None:
        """Shows the result, where the data is, and what to try next."""
        if result.report is not None:
            self._console.print(_table(result.report))
        sections = (
            _done(result),
            ["[bold]Where the data is[/]", *_places(result, plan)],
            ["[bold]What to try next[/]", *_next(plan)],
        )
        text = "\n\n".join("\n".join(section) for section in sections)
        self._console.print(
            Panel(text, title="done", border_style="green", expand=False), highlight=False
        )

    def failed(self, reason: str) -> None:
        """Shows that the demo failed."""
        self._console.print(f"[red]failed:[/] {reason}", highlight=False, soft_wrap=True)

    def stopped(self) -> None:
        """Shows that the user pressed Ctrl-C."""
        self._console.print("stopped; everything is closed, and the data is kept")


def _table(report: DemoReport) -> Table:
    table = Table(title="orders by region and status, read by Spark", box=box.SIMPLE_HEAD)
    table.add_column("region")
    for status in STATUSES:
        table.add_column(status, justify="right")
    table.add_column("amount", justify="right")
    for one in report.regions:
        counts = (f"{one.orders[status]:,}" for status in STATUSES)
        table.add_row(one.region, *counts, f"{one.amount:,.2f}")
    table.add_section()
    totals = (f"{sum(one.orders[status] for one in report.regions):,}" for status in STATUSES)
    table.add_row("all", *totals, f"{sum(one.amount for one in report.regions):,.2f}", style="bold")
    return table


def _done(result: Result) -> list[str]:
    done = [
        f"{result.sent:,} orders sent to topic [bold]{TOPIC}[/] and consumed by group {GROUP}:",
        *(
            f"  {one.member} billed {one.orders:,}, from queues {_list(one.queues)}"
            for one in result.tallies
        ),
    ]
    report = result.report
    if report is not None:
        done += [
            f"{report.messages:,} messages of all runs read by Spark and written as Parquet:",
            f"  {report.files} files, {report.file_bytes / 1024:,.0f} KiB; "
            f"{report.others} of the messages are images, not orders",
        ]
    return done


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _places(result: Result, plan: Plan) -> list[str]:
    places = [f"messages   {plan.store}/   (the next run adds to them)"]
    if result.report is not None:
        places.append(f"Parquet    {plan.parquet}/region=…/status=…/")
    return places


def _next(plan: Plan) -> list[str]:
    """Commands, each a line that can be pasted."""
    return [
        'make run ARGS="--messages 50000"',
        f".venv/bin/sprocket standalone --store {plan.store}",
        "then, in another terminal:",
        f".venv/bin/sprocket consume {TOPIC} --count 5",
        ".venv/bin/python examples/read_topic.py",
    ]
