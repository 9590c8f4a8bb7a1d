"""Keeps the modules of a Spark worker out of garbage collection.

Spark collects garbage in a Python worker after each task, before the next one may begin: 15 to
30 ms, most of it for loaded modules, which never become garbage. From the second task on they are
left out, so a task of a few rows ends in less than 1 ms.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable, Mapping

#: Spark sets it for a worker that gets further tasks.
_IS_REUSED = "SPARK_REUSE_WORKER"


class TaskCounter:
    """Counts the tasks of this process.

    Args:
        environment: variables of the process.
        freeze: excludes all present objects from later collections.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        freeze: Callable[[], None] = gc.freeze,
    ) -> None:
        self._environment = environment
        self._freeze = freeze
        self._tasks = itertools.count(1)

    def task_begins(self) -> None:
        """Is called when a task begins; at the second one it freezes all objects.

        By then all modules are loaded, and Spark has just collected the garbage of the first task.
        In a process that is no worker, such as the user's own, it does nothing.
        """
        if next(self._tasks) == 2 and self._environment.get(_IS_REUSED):
            self._freeze()


task_counter = TaskCounter()
