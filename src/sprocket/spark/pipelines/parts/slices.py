"""Does work in slices of offsets, one after the other at a rate, and saves the progress.

When a run is killed, the next one repeats at most the slice that was not finished. The progress is
one small file, which is replaced after each slice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.spark.options.checkpoint import (
    read_shape,
    read_witnesses,
    shape_offsets,
    shape_witnesses,
)
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.pipelines.parts.progress import Interrupt, Progress, Watch
from sprocket.spark.pipelines.parts.queue_witnesses import QueueWitnesses
from sprocket.spark.reading.ranges import between, limit, records_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "slices.json"
#: With a rate, a slice lasts so many seconds: a Spark job alone takes a good part of one.
_SLICE_S = 2.0
_LOOK_S = 0.05


class WorkUnit(NamedTuple):
    """A piece of work.

    Attributes:
        number: rises from unit to unit, and is the same in every run.
        start, end: its offsets, [start, end).
        rows: returns the messages between two offsets.
        witnesses: recognises its queues; None for one that does not come from queues.
    """

    number: int
    start: Offsets
    end: Offsets
    rows: Callable[[Offsets, Offsets], DataFrame]
    witnesses: QueueWitnesses | None = None


class SliceProgress:
    """The progress of a job, saved in a folder.

    Args:
        folder: a folder of its own for each job.
        job: identifies the job; a folder of another job is refused with UsageError.
    """

    def __init__(self, folder: Folder, job: str) -> None:
        self._folder = folder
        self._job = job
        saved: dict[str, Any] = folder.read(_FILE) or {"job": job, "unit": -1, "rows": 0}
        if saved.get("job") != job:
            raise UsageError(f"{folder} has the state of another job: give another state folder")
        self.unit: int = saved["unit"]
        self.rows: int = saved["rows"]
        self.done: Offsets = read_shape(saved.get("done", {}))
        self.witnesses = read_witnesses(saved.get("read", {}))

    def resumed(self, unit: WorkUnit) -> WorkUnit | None:
        """What is left of a unit; None if a later one has been begun."""
        if unit.number < self.unit:
            return None
        if unit.number == self.unit:
            return unit._replace(start={**unit.start, **self.done})
        return unit

    def keep(self, unit: WorkUnit, done: Offsets, rows: int) -> None:
        """Saves that a slice of `rows` messages is done, and so the unit up to `done`."""
        self.unit, self.done = unit.number, done
        self.witnesses = unit.witnesses.of(done) if unit.witnesses is not None else {}
        self.rows += rows
        self._folder.replace(
            _FILE,
            {
                "job": self._job,
                "unit": unit.number,
                "rows": self.rows,
                "done": shape_offsets(done),
                "read": shape_witnesses(self.witnesses),
            },
        )


class Slices:
    """Does units slice by slice.

    Args:
        memory: the saved progress.
        rows: most messages in a slice.
        rate: most messages a second; None for no limit.
        watch: called with the progress after each slice.
    """

    def __init__(
        self, memory: SliceProgress, *, rows: int, rate: float | None, watch: Watch
    ) -> None:
        if rate is not None and rate <= 0:
            raise UsageError(f"a rate is more than 0 messages a second, not {rate:g}")
        self._memory = memory
        self._rows = rows if rate is None else min(rows, math.ceil(rate * _SLICE_S))
        self._rate = rate
        self._watch = watch
        self._started = 0.0
        #: Messages done by this run.
        self.done = 0

    def run(self, units: Iterable[WorkUnit], act: Callable[[DataFrame], int]) -> bool:
        """Does the work that is left; False if Ctrl-C ended it, after a whole slice.

        Args:
            act: does a slice and returns its number of messages.
        """
        self._started = time.monotonic()
        with Interrupt() as interrupt:
            for unit in units:
                left = self._memory.resumed(unit)
                if left is not None and not self._unit(left, act, interrupt):
                    return False
        return True

    def _unit(self, unit: WorkUnit, act: Callable[[DataFrame], int], interrupt: Interrupt) -> bool:
        start = self._recognised(unit, unit.start)
        while between(start, unit.end):
            self._pace(interrupt)
            if interrupt.is_set:
                return False
            end = limit(start, unit.end, self._rows)
            count = act(unit.rows(start, end))
            self._memory.keep(unit, end, count)
            self.done += count
            start = self._recognised(unit, end)
            self._report(records_in(between(start, unit.end)))
        return True

    def _recognised(self, unit: WorkUnit, start: Offsets) -> Offsets:
        """The start of the next slice; other queues than those that were read begin anew."""
        memory = self._memory
        if unit.witnesses is None or unit.number != memory.unit:
            return start
        done = {queue: start[queue] for queue in memory.done if queue in start}
        return {**start, **unit.witnesses.begun_anew(done, unit.end, memory.witnesses)}

    def _report(self, left: int) -> None:
        spent = max(time.monotonic() - self._started, 1e-3)
        self._watch(Progress(self.done, self.done / spent, left))

    def _pace(self, interrupt: Interrupt) -> None:
        """Waits until the messages done so far keep within the rate."""
        if self._rate is None:
            return
        due = self._started + self.done / self._rate
        while not interrupt.is_set and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))
