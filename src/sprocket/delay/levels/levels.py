"""The delay levels: fixed delays that a message asks for by number, from level 1. Pure.

A delayed message waits in the queue of its level, so the due times rise within a queue.
Source: ScheduleMessageService.parseDelayLevel, delayLevel2QueueId, computeDeliverTimestamp of
RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.base.errors import ConfigError
from sprocket.message.hashing import tag_code
from sprocket.message.properties import DELAY, TAGS

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels:
    """The delay and the queue of the schedule topic of each level."""

    __slots__ = ("_delays_ms",)

    def __init__(self, delays_ms: tuple[int, ...]) -> None:
        self._delays_ms = delays_ms

    @classmethod
    def parse(cls, text: str) -> DelayLevels:
        """Parses `1s 5s 10s …`: numbers with a unit of s, m, h or d.

        Raises:
            ConfigError: an item has another form, or there is none.
        """
        delays_ms = []
        for word in text.split():
            number, unit = word[:-1], word[-1]
            if unit not in _UNIT_MS or not (number.isascii() and number.isdigit()):
                raise ConfigError(f"messageDelayLevel: {word!r} is no delay such as 30s or 2h")
            delays_ms.append(int(number) * _UNIT_MS[unit])
        if not delays_ms:
            raise ConfigError("there are no delay levels")
        return cls(tuple(delays_ms))

    @property
    def highest(self) -> int:
        """The last level."""
        return len(self._delays_ms)

    def clamp(self, level: int) -> int:
        """The level itself, or the highest level if it is above that."""
        return min(level, len(self._delays_ms))

    def delay_ms(self, level: int) -> int:
        """How long a message of the level waits, ms."""
        return self._delays_ms[level - 1]

    def tag_code(self, stored_ms: int, properties: Mapping[str, str]) -> int:
        """The tag code of an entry in the schedule topic: the time when it is due, ms since 1970.

        A record without a level has the hash of its tag, as in any other topic.
        """
        level = self.clamp(_level(properties.get(DELAY, "")))
        return stored_ms + self.delay_ms(level) if level > 0 else tag_code(properties.get(TAGS))

    @staticmethod
    def queue_of(level: int) -> int:
        """Number of the schedule topic's queue in which messages of the level wait."""
        return level - 1


def _level(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
