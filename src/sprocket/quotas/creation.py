"""Who makes topics and groups: deep in the tables nobody knows whose request makes one.

So whoever answers a request says it here for as long as that takes, in the task that it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

#: Counts one more `new_topics` or `new_groups` of whoever asks, or raises `SystemBusy`.
CreationCheck = Callable[[str], None]
creation_check: ContextVar[CreationCheck | None] = ContextVar("creation_check", default=None)


def check_creation(limit: str) -> None:
    """Called before a topic or group is made that does not exist.

    Raises:
        SystemBusy: whoever asks has made as many as it may.
    """
    check = creation_check.get()
    if check is not None:
        check(limit)
