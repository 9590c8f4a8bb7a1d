"""Reports what goes wrong for a while: once when it begins, then rarely, and once at its end. Pure.

Each attempt that fails would be worth a line to nobody: a client that tries again makes hundreds.
No line at all would leave people without a reason why nothing comes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

#: Seconds until the second report, and the longest pause between two; each is twice the last one.
_PAUSE_FIRST = 60.0
_PAUSE_LONGEST = 3600.0
#: Troubles known at once: names from outside must not fill the memory. Further ones are reported at
#: the level DEBUG only.
TROUBLES_MAX = 1_000


class _Trouble:
    __slots__ = ("began", "level", "next_report", "pause", "text")

    def __init__(self, began: float, level: int, text: str) -> None:
        self.began = began
        self.level = level
        self.text = text
        self.pause = _PAUSE_FIRST
        self.next_report = began + _PAUSE_FIRST


class Troubles:
    """What goes wrong at present.

    Args:
        clock: a clock that never jumps, s.
        logger: where it is reported.
    """

    __slots__ = ("_clock", "_logger", "_troubles")

    def __init__(self, clock: Callable[[], float], logger: logging.Logger) -> None:
        self._clock = clock
        self._logger = logger
        self._troubles: dict[str, _Trouble] = {}

    @property
    def is_any(self) -> bool:
        """Whether anything goes wrong: cheap, for hot paths."""
        return bool(self._troubles)

    def reported(self, name: str) -> str | None:
        """The text with which a trouble began, or None if all is well."""
        found = self._troubles.get(name)
        return None if found is None else found.text

    def failed(
        self,
        name: str,
        text: str,
        why: object = "",
        *,
        level: int = logging.WARNING,
        is_new: bool = False,
    ) -> None:
        """Something went wrong, maybe again.

        Args:
            name: what is counted as one trouble.
            text: what is reported: "no answer from broker 10.0.0.1:10911".
            why: the reason, which may be another one each time.
            level: of the report.
            is_new: reports it at once, as another trouble of the same name.
        """
        now = self._clock()
        trouble = self._troubles.get(name)
        end = f": {why}" if f"{why}" else ""
        if trouble is None or is_new:
            if trouble is None and len(self._troubles) >= TROUBLES_MAX:
                level = logging.DEBUG
            else:
                self._troubles[name] = _Trouble(now, level, text)
            self._logger.log(level, "%s%s", text, end)
        elif now >= trouble.next_report:
            trouble.pause = min(trouble.pause * 2, _PAUSE_LONGEST)
            trouble.next_report = now + trouble.pause
            self._logger.log(level, "%s for %.0f s%s", text, now - trouble.began, end)
        else:
            self._logger.debug("%s%s", text, end)

    def ended(self, name: str, text: str) -> None:
        """All is well; reported only if something was wrong, with the level of that report."""
        trouble = self._troubles.pop(name, None) if self._troubles else None
        if trouble is not None:
            seconds = self._clock() - trouble.began
            self._logger.log(trouble.level, "%s, after %.0f s", text, seconds)

    def forget(self, name: str) -> None:
        """Ends a trouble without a report: what it was about is gone."""
        self._troubles.pop(name, None)
