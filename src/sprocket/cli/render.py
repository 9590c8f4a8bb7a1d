"""How results are printed: JSON lines for programs, aligned columns for people."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import typer


def json(value: Any) -> None:
    """Prints one value as one line of JSON."""
    import msgspec

    typer.echo(msgspec.json.encode(value, enc_hook=str).decode())


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints rows under headings. Columns are as wide as their widest text; numbers align right."""
    lines = [list(row) for row in rows]
    texts = [list(headings), *([_text(cell) for cell in row] for row in lines)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    is_number = [
        bool(lines) and all(type(row[at]) in (int, float) for row in lines)
        for at in range(len(headings))
    ]
    for number, line in enumerate(texts):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ]
        text = "  ".join(cells).rstrip()
        typer.secho(text, bold=True) if number == 0 else typer.echo(text)


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Shows progress on stderr, if that is a terminal; yields the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn(what), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell)
