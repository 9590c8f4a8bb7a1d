"""How a broker and a name server bear many connections, topics, members and brokers.

`python -m bench scale [--quick] [--only PART]`. Each part runs a server in a process of its own,
and everything else in this one. Figures are of single runs.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench.scale import connections, members, routes, scan, spark, streams, topics
from bench.scale import console as web_console

#: The parts by name.
PARTS: dict[str, Callable[[Console, Path, bool], None]] = {
    "connections": connections.measure,
    "topics": topics.measure,
    "members": members.measure,
    "routes": routes.measure,
    "spark": spark.measure,
    "streams": streams.measure,
    "scan": scan.measure,
    "console": web_console.measure,
}


def main(
    console: Console, folder: Path, *, quick: bool, rounds: int, only: Sequence[str] = ()
) -> None:
    """Prints a table for each part."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in only or PARTS:
        part = folder / name
        part.mkdir()
        PARTS[name](console, part, quick)
