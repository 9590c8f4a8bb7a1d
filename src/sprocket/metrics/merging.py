"""Joins the metrics of several processes to one page. Pure.

The values of one metric stand together, under one heading, as Prometheus wants them: also those of
different processes. Labels tell the processes apart.
"""

from __future__ import annotations

from collections.abc import Iterable

_HELP, _TYPE = "# HELP ", "# TYPE "


def merged(texts: Iterable[str]) -> str:
    """The texts of `exposition.heading` and `exposition.line` of several processes, as one.

    A metric has the heading of the first text that has it.
    """
    headings: dict[str, list[str]] = {}
    values: dict[str, list[str]] = {}
    for text in texts:
        name, is_new = "", False
        for line in text.split("\n"):
            if line.startswith(_HELP):
                name = line[len(_HELP) :].partition(" ")[0]
                is_new = name not in headings
            if line.startswith((_HELP, _TYPE)):
                if is_new:
                    headings.setdefault(name, []).append(line)
            elif line and name:
                values.setdefault(name, []).append(line)
    return "".join(
        "".join(f"{line}\n" for line in (*lines, *values.get(name, ())))
        for name, lines in headings.items()
    )
