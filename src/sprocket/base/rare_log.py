"""Warnings that others can cause as often as they like: some a minute, and a count of the rest.

A peer that is refused again and again would else fill the disk, and hide everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sprocket.base.deadline import loop_ms

#: Lines of one kind in a minute.
LINES_MAX = 20
_MINUTE_MS = 60_000


class RareLog:
    """Writes warnings to a logger; of each kind only some a minute, the others at DEBUG.

    Args:
        now_ms: a clock that never jumps.
    """

    __slots__ = ("_kinds", "_logger", "_now_ms")

    def __init__(self, logger: logging.Logger, now_ms: Callable[[], int] = loop_ms) -> None:
        self._logger = logger
        self._now_ms = now_ms
        #: By kind: when its minute began, the lines since then, and those that were left out.
        self._kinds: dict[str, list[int]] = {}

    def warning(self, text: str, *args: object) -> None:
        """Logs a warning, whose text before its arguments are put in is its kind."""
        now = self._now_ms()
        minute = self._kinds.setdefault(text, [now, 0, 0])
        if now - minute[0] >= _MINUTE_MS:
            minute[0], minute[1] = now, 0
        if minute[1] >= LINES_MAX:
            minute[2] += 1
            self._logger.debug(text, *args)
            return
        minute[1] += 1
        if left_out := minute[2]:
            minute[2] = 0
            self._logger.warning(f"{text} (%d more like this were left out)", *args, left_out)
        else:
            self._logger.warning(text, *args)
