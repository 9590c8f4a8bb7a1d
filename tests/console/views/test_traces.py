"""Rows of the steps of a message."""

from __future__ import annotations

from datetime import UTC, datetime

from sprocket.console.operations.traces import TraceStep
from sprocket.console.views.traces import trace_rows
from sprocket.console.views.units import NOTHING

AT = datetime(2026, 11, 29, 18, 0, 1, 234_000, UTC)


def test_each_step_is_a_row() -> None:
    rows = trace_rows(
        [
            TraceStep(what="sent", at=AT, group="shop", client="10.0.0.1", took_ms=3, is_ok=True),
            TraceStep(
                what="consumed", at=AT, group="billing\x1b[1m", client="10.0.0.2", took_ms=5_000,
                is_ok=False, result="raised an error", retries=2,
            ),
            TraceStep(what="consumed", at=None, group=None, client=""),
            TraceStep(what="transaction ended", at=AT, group="g", client="", result="COMMIT"),
        ]
    )  # fmt: skip
    assert [row["number"] for row in rows] == [0, 1, 2, 3]
    assert rows[0]["at_text"] == "2026-11-29 18:00:01.234"
    assert (rows[0]["result"], rows[0]["result_look"]) == ("success", "good")
    assert (rows[1]["result"], rows[1]["result_look"]) == ("raised an error", "bad")
    assert (rows[1]["took_text"], rows[1]["retries_text"]) == ("5\u202f000 ms", "2")
    assert "\x1b" not in rows[1]["group"]
    assert (rows[2]["at_text"], rows[2]["result"]) == (NOTHING, "its end is not known")
    assert "result_look" not in rows[2]
    assert rows[3]["result"] == "COMMIT"
