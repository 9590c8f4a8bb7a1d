"""How far a pipeline is, told while it runs, and how Ctrl-C ends it: after what is in hand."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple, Self


class Progress(NamedTuple):
    """How far it is.

    Attributes:
        rows: done by this run.
        per_second: of late; None where it cannot be told yet.
        behind: messages that are there and not done; None if unknown.
    """

    rows: int
    per_second: float | None
    behind: int | None


#: Called now and then by a pipeline that runs.
Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Tells nobody."""


class Interrupt:
    """While inside, Ctrl-C only asks to stop; pressed again, it interrupts at once.

    Outside the main thread it does nothing: there Ctrl-C never arrives.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._before: Any = None
        self._is_ours = False

    def __enter__(self) -> Self:
        self.is_set = False
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
            self._is_ours = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, self._before)
            self._is_ours = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
