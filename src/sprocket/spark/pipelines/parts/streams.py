"""Runs a streaming query to its end, reports its progress, and stops it after Ctrl-C."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import SprocketError
from sprocket.spark.pipelines.parts.progress import Interrupt, Progress, Watch
from sprocket.spark.query_progress import progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_LOOK_S = 0.1
_REASON_LENGTH_MAX = 1000
#: A line at the end of a traceback: the error's class and its text.
_RAISED = re.compile(
    r"^(?:Caused by: )?((?:[A-Za-z_]\w*\.)+\w+|\w*(?:Error|Exception|Interrupt)): (\S.*)$",
    re.MULTILINE,
)


class StreamFailed(SprocketError):
    """A streaming query ended with an error. The text is that of the error that caused it."""


def trigger(*, follows: bool, every_s: float) -> dict[str, Any]:
    """Spark's trigger: a micro-batch every `every_s` seconds, or `availableNow` once."""
    if not follows:
        return {"availableNow": True}
    # Spark reads no exponents, which a float may have.
    return {"processingTime": f"{round(every_s * 1000)} milliseconds"}


def run_query(writer: DataStreamWriter, watch: Watch) -> bool:
    """Starts a query and returns when it has ended; False if Ctrl-C ended it.

    The next run repeats the micro-batch that a stop cut off.

    Raises:
        StreamFailed: the query ended with an error.
    """
    with Interrupt() as interrupt:
        query = writer.start()
        try:
            _watched(query, watch, interrupt)
        finally:
            if query.isActive:
                query.stop()
    failure = query.exception()
    if failure is not None and not interrupt.is_set:
        raise StreamFailed(reason(str(failure))) from failure
    return not interrupt.is_set


def _watched(query: StreamingQuery, watch: Watch, interrupt: Interrupt) -> None:
    rows, last = 0, -1
    is_running = True
    while is_running:
        is_running = query.isActive and not interrupt.is_set
        seen = query.lastProgress
        if seen is not None and seen["batchId"] != last:
            last = seen["batchId"]
            rows += seen["numInputRows"]
            watch(_progress(seen, rows))
        if is_running:
            time.sleep(_LOOK_S)


def _progress(seen: Mapping[str, Any], rows: int) -> Progress:
    known = [one.messages_behind for one in progress(seen) if one.behind]
    return Progress(rows, seen["processedRowsPerSecond"], sum(known) if known else None)


def reason(text: str) -> str:
    """The cause in the text of a Spark failure: our own error if it contains one.

    Spark wraps the error of a task several times, each time with a traceback.
    """
    raised: list[tuple[str, str]] = _RAISED.findall(text)
    ours = [why for kind, why in raised if kind.startswith("sprocket.")]
    theirs = [f"{kind.rpartition('.')[2]}: {why}" for kind, why in raised if not _is_shell(kind)]
    shells = [why for _, why in raised]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = [*ours[-1:], *theirs, *shells[-1:], *lines, "no reason was given"]
    return chosen[0].removesuffix(" SQLSTATE: 39000").strip()[:_REASON_LENGTH_MAX]


def _is_shell(kind: str) -> bool:
    """Whether an error of this class only reports another error."""
    return kind.startswith(("pyspark.", "py4j.", "org.apache.spark"))
