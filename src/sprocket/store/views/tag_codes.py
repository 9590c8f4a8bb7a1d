"""What a consume queue entry holds for filters, worked out from a record.

A tag's hash; for a record of the schedule topic the time when it is due.
Source: CommitLog.checkMessageAndReturnSize and ScheduleMessageService of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.base.errors import ConfigError
from sprocket.message.hashing import tag_code
from sprocket.message.properties import DELAY, TAGS
from sprocket.message.topic import SCHEDULE

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_delay_levels(text: str) -> list[int]:
    """Delays in ms, from level 1 on, as `1s 5s 2h` names them.

    Raises:
        ConfigError: a word is no number with one of the units s, m, h, d.
    """
    delays = []
    for word in text.split():
        number, unit = word[:-1], word[-1]
        if unit not in _UNIT_MS or not (number.isascii() and number.isdigit()):
            raise ConfigError(f"messageDelayLevel: {word!r} is no delay such as 30s or 2h")
        delays.append(int(number) * _UNIT_MS[unit])
    return delays


class TagCodes:
    """Tag codes under one set of delay levels."""

    __slots__ = ("_delays_ms",)

    def __init__(self, delays_ms: list[int]) -> None:
        self._delays_ms = delays_ms

    def of(self, topic: str, stored_ms: int, properties: Mapping[str, str]) -> int:
        """The tag code of a record's queue entry."""
        if topic == SCHEDULE and DELAY in properties:
            level = min(_level(properties[DELAY]), len(self._delays_ms))
            if level > 0:
                return stored_ms + self._delays_ms[level - 1]
        return tag_code(properties.get(TAGS))


def _level(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
