"""What the settings say of the timers' files. Pure."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.store.config import StoreConfig


class Shape(NamedTuple):
    """What the settings say of the files.

    Attributes:
        width_ms: of a slot of the wheel.
        roll_ms: what is due later is stored anew on the way.
        timer_file_bytes, log_file_bytes: of a file of the timer log, and of the log.
    """

    width_ms: int
    roll_ms: int
    timer_file_bytes: int
    log_file_bytes: int

    @classmethod
    def of(cls, config: StoreConfig) -> Shape:
        """What the settings say.

        A message is stored anew before its record leaves the log with the oldest file.
        """
        width_ms = config.timer_slot_ms
        kept_ms = config.kept_hours * 3_600_000 * 2 // 3
        roll_ms = min(config.timer_roll_slots * width_ms, kept_ms // width_ms * width_ms)
        return cls(
            width_ms, max(roll_ms, 2 * width_ms), config.timer_file_bytes, config.log_file_bytes
        )

    def slot_of(self, time_ms: int) -> int:
        """When the slot began that a time lies in."""
        return time_ms // self.width_ms * self.width_ms

    def on_the_way(self, slot_ms: int, now_ms: int) -> int:
        """The slot in which a message is stored anew that is not due for `roll_ms` or longer.

        Args:
            now_ms: the slot that it is now.

        Source: TimerMessageStore.doEnqueue of RocketMQ 5.3.
        """
        left_ms = slot_ms - now_ms
        if left_ms - self.roll_ms < self.roll_ms // 3:  # so that not much is left for the last time
            return now_ms + self.slot_of(self.roll_ms // 2)
        return now_ms + self.roll_ms
