"""The traces of a message as rows: what its clients say that they did with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sprocket.console.operations.traces import TraceStep
from sprocket.console.views.bodies import first_line
from sprocket.console.views.units import NOTHING, count_text, moment_text

_GROUP_LENGTH, _RESULT_LENGTH = 60, 60


def trace_rows(steps: Iterable[TraceStep]) -> list[dict[str, Any]]:
    """A row for each step, in their order."""
    return [_row(number, step) for number, step in enumerate(steps)]


def _row(number: int, step: TraceStep) -> dict[str, Any]:
    row: dict[str, Any] = {
        "number": number,
        "at": step.at.timestamp() if step.at else 0,
        "at_text": moment_text(step.at).removesuffix(" UTC"),
        "what": step.what,
        "group": first_line(step.group, _GROUP_LENGTH),
        "client": step.client,
        "took": -1 if step.took_ms is None else step.took_ms,
        "took_text": NOTHING if step.took_ms is None else f"{count_text(step.took_ms)} ms",
        "retries": step.retries or 0,
        "retries_text": NOTHING if step.retries is None else count_text(step.retries),
    }
    if step.is_ok is None:
        said = step.result or ("its end is not known" if step.what == "consumed" else None)
        return row | {"result": first_line(said, _RESULT_LENGTH)}
    said = step.result or ("success" if step.is_ok else "failed")
    return row | {
        "result": first_line(said, _RESULT_LENGTH),
        "result_look": "good" if step.is_ok else "bad",
    }
