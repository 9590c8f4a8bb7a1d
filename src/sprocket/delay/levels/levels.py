"""The fixed delays that a message can ask for by number, from level 1. Pure.

A delayed message waits in a queue of its own level, so within a queue the due times rise.
Source: ScheduleMessageService.parseDelayLevel, delayLevel2QueueId of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import ConfigError
from sprocket.store.views.tag_codes import parse_delay_levels


class DelayLevels:
    """Level to delay, and level to queue of the schedule topic."""

    __slots__ = ("_delays_ms",)

    def __init__(self, delays_ms: tuple[int, ...]) -> None:
        self._delays_ms = delays_ms

    @classmethod
    def parse(cls, text: str) -> DelayLevels:
        """Reads `1s 5s 10s …`: numbers with a unit of s, m, h or d.

        Raises:
            ConfigError: an item is something else, or there is none.
        """
        delays_ms = tuple(parse_delay_levels(text))
        if not delays_ms:
            raise ConfigError("there are no delay levels")
        return cls(delays_ms)

    @property
    def highest(self) -> int:
        """The last level."""
        return len(self._delays_ms)

    def clamp(self, level: int) -> int:
        """The level itself, or the highest one if it is above that."""
        return min(level, len(self._delays_ms))

    def delay_ms(self, level: int) -> int:
        """How long a message of the level waits."""
        return self._delays_ms[level - 1]

    @staticmethod
    def queue_of(level: int) -> int:
        """Number of the schedule topic's queue that messages of the level wait in."""
        return level - 1
