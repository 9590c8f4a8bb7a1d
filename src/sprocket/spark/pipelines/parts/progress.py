"""Progress of a running pipeline, and its end by Ctrl-C after the current piece of work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple, Self


class Progress(NamedTuple):
    """Progress of a run.

    Attributes:
        rows: messages done by this run.
        per_second: messages a second; None if unknown yet.
        behind: messages that wait to be done; None if unknown.
    """

    rows: int
    per_second: float | None
    behind: int | None

    def in_words(self) -> str:
        """One line of text."""
        said = f"{self.rows:,} messages"
        if self.per_second is not None:
            said += f", {self.per_second:,.0f}/s"
        if self.behind is not None:
            said += f", lag {self.behind:,}"
        return said


#: Called by a running pipeline after each piece of work.
Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Ignores the progress."""


class Interrupt:
    """While the context is open, Ctrl-C sets `is_set`; a second Ctrl-C interrupts at once.

    Outside the main thread it does nothing, since Ctrl-C never arrives there.
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
