"""Sizes and times of the timers, derived from the store's settings. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from sprocket.store.config import StoreConfig


class Shape(NamedTuple):
    """Sizes and times of the timers.

    Attributes:
        width_ms: width of a slot of the wheel.
        roll_ms: a message that is due after a longer time is stored anew meanwhile (rolled).
        timer_file_bytes, log_file_bytes: file size of the timer log, and of the commit log.
    """

    width_ms: int
    roll_ms: int
    timer_file_bytes: int
    log_file_bytes: int

    @classmethod
    def of(cls, config: StoreConfig) -> Shape:
        """Derives them from the settings.

        A message is rolled after at most two thirds of the time that log files are kept, so before
        its record leaves the log with the oldest file.
        """
        width_ms = config.timer_slot_ms
        kept_ms = config.kept_hours * 3_600_000 * 2 // 3
        roll_ms = min(config.timer_roll_slots * width_ms, kept_ms // width_ms * width_ms)
        return cls(
            width_ms, max(roll_ms, 2 * width_ms), config.timer_file_bytes, config.log_file_bytes
        )

    def slot_of(self, time_ms: int) -> int:
        """The begin of the slot that contains a time, ms."""
        return time_ms // self.width_ms * self.width_ms

    def on_the_way(self, slot_ms: int, now_ms: int) -> int:
        """The slot in which to roll a message that is not due for `roll_ms` or longer.

        Args:
            slot_ms: the slot in which it is due.
            now_ms: the slot of the present time.

        Source: TimerMessageStore.doEnqueue of RocketMQ 5.3.
        """
        left_ms = slot_ms - now_ms
        if left_ms - self.roll_ms < self.roll_ms // 3:  # or the last wait would be very short
            return now_ms + self.slot_of(self.roll_ms // 2)
        return now_ms + self.roll_ms


#: Gives the shape by the present settings.
Shapes: TypeAlias = Callable[[], Shape]


def shapes(settings: Callable[[], StoreConfig]) -> Shapes:
    """Derives the shape anew when the settings have changed, as they may while the broker runs."""
    known = settings()
    shape = Shape.of(known)

    def present() -> Shape:
        nonlocal known, shape
        if (now := settings()) is not known:
            known, shape = now, Shape.of(now)
        return shape

    return present
