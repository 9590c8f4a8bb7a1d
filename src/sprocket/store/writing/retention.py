"""How long files of the log are kept: the decision, without the doing.

A file goes when its newest message is older than it must be kept, but only at the hours set for
that, or when the disk is fuller than it should be. If it is much fuller, or all files together are
larger than they may be, files go whatever their age. The file that is written to never goes.

Source: DefaultMessageStore.CleanCommitLogService and MappedFileQueue.deleteExpiredFileByTime of
RocketMQ 5.x.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.store.config import StoreConfig

_HOUR_MS = 3_600_000


class DeletionReason(Enum):
    """Why a file goes."""

    EXPIRED = "expired"
    FORCED = "forced"
    TOO_MUCH = "too much"


class RetentionRules(NamedTuple):
    """What is decided by.

    Attributes:
        kept_ms: for so long a message is kept at least, unless the disk forces it out.
        hours: at these hours of the day expired files go.
        used_percent: from here on expired files go at any hour.
        forced_percent: from here on files go whatever their age; above 100: never.
        full_percent: from here on messages are refused.
        bytes_max: more than this the files of the log must not have; 0: they may.
        files_max: so many files go at most at one look.
    """

    kept_ms: int
    hours: frozenset[int]
    used_percent: int
    forced_percent: int
    full_percent: int
    bytes_max: int = 0
    files_max: int = 10

    @classmethod
    def of(cls, config: StoreConfig) -> RetentionRules:
        """The rules that settings state.

        Raises:
            ConfigError: an hour is none.
        """
        forced = min(config.disk_forced_percent, config.disk_full_percent)
        return cls(
            config.kept_hours * _HOUR_MS,
            parse_hours(config.delete_hours),
            config.disk_used_percent,
            forced if config.may_force else 101,
            config.disk_full_percent,
            config.log_bytes_max,
            config.files_removed_max,
        )

    def verdict(
        self,
        newest_ms: int,
        *,
        now_ms: int,
        hour: int,
        used_percent: float,
        log_bytes: int = 0,
    ) -> DeletionReason | None:
        """Whether the oldest file goes now.

        Args:
            newest_ms: when the last message in it was stored.
            hour: hour of the day, local time.
            used_percent: how full the disk is.
            log_bytes: how large the files of the log are together.

        Returns:
            Why it goes; None if it stays.
        """
        is_expired = now_ms - newest_ms >= self.kept_ms
        if is_expired and (hour in self.hours or used_percent > self.used_percent):
            return DeletionReason.EXPIRED
        if self.bytes_max and log_bytes > self.bytes_max:
            return DeletionReason.TOO_MUCH
        return DeletionReason.FORCED if used_percent > self.forced_percent else None

    def is_full(self, used_percent: float) -> bool:
        """Whether messages are refused."""
        return used_percent >= self.full_percent


def parse_hours(text: str) -> frozenset[int]:
    """Hours of the day, as `04` or `04;16` names them.

    Raises:
        ConfigError: a word is no hour.
    """
    hours = set()
    for word in text.replace(",", ";").split(";"):
        hour = word.strip()
        if not (hour.isascii() and hour.isdigit() and int(hour) < 24):
            raise ConfigError(f"deleteWhen: {hour!r} is no hour from 00 to 23")
        hours.add(int(hour))
    return frozenset(hours)
