"""Work cut into slices of offsets, done one after the other at a rate, and remembered.

What a slice does may be repeated if a run is killed within it, and nothing else: the bound of
repeats is one slice. The memory is one small file, replaced after each slice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.spark.options.positions import read_shape, shape_offsets
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.pipelines.parts.progress import Interrupt, Progress, Watch
from sprocket.spark.reading.ranges import between, limit, records_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "slices.json"
#: With a rate, a slice is what so many seconds may do: a job of Spark's costs a good part of one.
_SLICE_S = 2.0
_LOOK_S = 0.05


class Unit(NamedTuple):
    """A piece of work.

    Attributes:
        number: grows from unit to unit, and names the same unit in every run.
        start, end: its offsets.
        rows: the messages of a slice.
    """

    number: int
    start: Offsets
    end: Offsets
    rows: Callable[[Offsets, Offsets], DataFrame]


class Memory:
    """What is done of a job, kept in a folder.

    Args:
        folder: one for each job.
        job: what tells jobs apart; a folder of another job is refused.
    """

    def __init__(self, folder: Folder, job: str) -> None:
        self._folder = folder
        self._job = job
        told: dict[str, Any] = folder.read(_FILE) or {"job": job, "unit": -1, "rows": 0}
        if told.get("job") != job:
            raise UsageError(f"{folder} remembers another job: give another state folder")
        self.unit: int = told["unit"]
        self.rows: int = told["rows"]
        self.done: Offsets = read_shape(told.get("done", {}))

    def resumed(self, unit: Unit) -> Unit | None:
        """What is left of a unit; None if a later one has been begun."""
        if unit.number < self.unit:
            return None
        if unit.number == self.unit:
            return unit._replace(start={**unit.start, **self.done})
        return unit

    def keep(self, unit: Unit, done: Offsets, rows: int) -> None:
        """A slice is done: everything of the unit up to `done`."""
        self.unit, self.done = unit.number, done
        self.rows += rows
        self._folder.replace(
            _FILE,
            {
                "job": self._job,
                "unit": unit.number,
                "rows": self.rows,
                "done": shape_offsets(done),
            },
        )


class Slices:
    """Does units slice by slice.

    Args:
        memory: what is done.
        rows: most messages in a slice.
        rate: most messages a second, or None.
        watch: told after each slice.
    """

    def __init__(self, memory: Memory, *, rows: int, rate: float | None, watch: Watch) -> None:
        if rate is not None and rate <= 0:
            raise UsageError(f"a rate is more than 0 messages a second, not {rate:g}")
        self._memory = memory
        self._rows = rows if rate is None else min(rows, math.ceil(rate * _SLICE_S))
        self._rate = rate
        self._watch = watch
        self._started = 0.0
        #: Messages done by this run.
        self.done = 0

    def run(self, units: Iterable[Unit], act: Callable[[DataFrame], int]) -> bool:
        """Does what is left; False if Ctrl-C ended it, behind a whole slice.

        Args:
            act: does a slice and says how many messages that were.
        """
        self._started = time.monotonic()
        with Interrupt() as interrupt:
            for unit in units:
                left = self._memory.resumed(unit)
                if left is not None and not self._unit(left, act, interrupt):
                    return False
        return True

    def _unit(self, unit: Unit, act: Callable[[DataFrame], int], interrupt: Interrupt) -> bool:
        start = unit.start
        while between(start, unit.end):
            self._pace(interrupt)
            if interrupt.is_set:
                return False
            end = limit(start, unit.end, self._rows)
            count = act(unit.rows(start, end))
            self._memory.keep(unit, end, count)
            self.done += count
            start = end
            self._tell(records_in(between(start, unit.end)))
        return True

    def _tell(self, left: int) -> None:
        spent = max(time.monotonic() - self._started, 1e-3)
        self._watch(Progress(self.done, self.done / spent, left))

    def _pace(self, interrupt: Interrupt) -> None:
        """Returns when what is done so far may be done by now."""
        if self._rate is None:
            return
        due = self._started + self.done / self._rate
        while not interrupt.is_set and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))
