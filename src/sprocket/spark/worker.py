"""What a worker of Spark's has loaded is looked through for garbage only once.

Spark collects garbage in a Python worker after each task, before the next may begin: 15 to 30 ms
for the modules that stand there and will stay. From the second task on they are left out, so that
a task of a few rows ends in under one.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable, Mapping

#: Spark says by it that a worker gets further tasks.
_IS_REUSED = "SPARK_REUSE_WORKER"


class Loaded:
    """Counts the tasks of this process.

    Args:
        environment: of the process.
        freeze: leaves everything there is out of later collections.
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
        """Called at the begin of each task.

        At that of the second everything is loaded, and what was garbage has just been collected.
        In a process that is no worker, such as the user's own, nothing is done.
        """
        if next(self._tasks) == 2 and self._environment.get(_IS_REUSED):
            self._freeze()


loaded = Loaded()
