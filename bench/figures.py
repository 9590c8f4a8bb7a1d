"""Interleaved runs of two sides, and the table that holds them against each other."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results.jsonl"


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured: its name, unit, and whether more is better."""

    name: str
    unit: str
    more_is_better: bool


RATE = Figure("rate", "/s", True)
CPU = Figure("server CPU", "µs/message", False)
P50 = Figure("p50", "ms", False)
P99 = Figure("p99", "ms", False)

Sample = Mapping[Figure, float]


def interleave(
    sides: Mapping[str, Callable[[], Sample]], *, rounds: int, warm_up: int = 1
) -> dict[str, list[Sample]]:
    """Runs the sides in turn, so that what else the machine does hits all of them alike."""
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    for number in range(warm_up + rounds):
        for name, measure in sides.items():
            sample = measure()
            if number >= warm_up:
                samples[name].append(sample)
    return samples


class Report:
    """A table with a column for each side, and a ratio; each row is also kept as a line of JSON."""

    def __init__(self, title: str, sides: list[str]) -> None:
        self._title = title
        self._sides = sides
        self._rows: list[list[str]] = []

    def add(self, case: str, samples: Mapping[str, list[Sample]]) -> None:
        """Adds a case: every figure's min / median / max, and the ratio of medians."""
        for figure in next(iter(samples.values()))[0]:
            medians, cells = [], []
            for side in self._sides:
                values = [sample[figure] for sample in samples.get(side, [])]
                if not values:
                    cells.append("-")
                    continue
                medians.append(statistics.median(values))
                cells.append(" / ".join(_plain(v) for v in (min(values), medians[-1], max(values))))
            ratio = f"{medians[0] / medians[1]:.2f}" if len(medians) == 2 and medians[1] else ""
            self._rows.append([case, f"{figure.name} ({figure.unit})", *cells, ratio])
            _keep(self._title, case, figure, samples)

    def show(self, console: Console) -> None:
        """Prints the table."""
        table = Table(title=f"{self._title} (min / median / max)", title_justify="left")
        for heading in ("case", "figure", *self._sides):
            table.add_column(heading, justify="right" if heading in self._sides else "left")
        if len(self._sides) == 2:
            table.add_column(f"{self._sides[0]} ÷ {self._sides[1]}", justify="right")
        last = None
        for case, *rest in self._rows:
            cells = rest if len(self._sides) == 2 else rest[:-1]
            table.add_row("" if case == last else case, *cells)
            last = case
        console.print(table)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _keep(title: str, case: str, figure: Figure, samples: Mapping[str, list[Sample]]) -> None:
    row = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "bench": title,
        "case": case,
        "figure": figure.name,
        "unit": figure.unit,
        "cores": os.cpu_count(),
        **{side: [round(s[figure], 3) for s in values] for side, values in samples.items()},
    }
    with RESULTS.open("a") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> dict[str, float]:
    """Resident memory of a process in MiB: `anonymous` (its own) and `file` (mapped files)."""
    wanted = {"RssAnon": "anonymous", "RssFile": "file", "RssShmem": "shared"}
    sizes = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, rest = line.partition(":")
        if key in wanted:
            sizes[wanted[key]] = int(rest.split()[0]) / 1024
    return sizes
