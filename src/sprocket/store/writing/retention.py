"""Retention: decides how long files of the log are kept, and removes nothing itself.

A file has expired when its newest message is older than the retention time. It is then removed at
the hours set for that, or as soon as the disk is too full. If the disk is much fuller, or all files
together are too large, files are removed whatever their age. The current file is never removed.

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
    """Why a file is removed."""

    EXPIRED = "expired"
    FORCED = "forced"
    TOO_MUCH = "too much"


class RetentionRules(NamedTuple):
    """The limits by which files are removed. Percentages say how full the disk is.

    Attributes:
        kept_ms: a message is kept at least this long, unless the disk is too full.
        hours: hours of the day at which expired files are removed.
        used_percent: above it, expired files are removed at any hour.
        forced_percent: above it, files are removed whatever their age; above 100: never.
        full_percent: from it on, messages are refused.
        bytes_max: the most bytes that the files of the log may have together; 0: no limit.
        files_max: the most files that one check removes.
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
        """The rules from the settings.

        Raises:
            ConfigError: an hour is not valid.
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
        hour: int | None,
        used_percent: float,
        log_bytes: int = 0,
    ) -> DeletionReason | None:
        """Whether the oldest file is removed now.

        Args:
            newest_ms: when the last message in it was stored.
            hour: hour of the day, local time; None: any hour will do.
            used_percent: how full the disk is.
            log_bytes: total size of the files of the log.

        Returns:
            The reason to remove it; None if it is kept.
        """
        is_expired = now_ms - newest_ms >= self.kept_ms
        is_time = hour is None or hour in self.hours
        if is_expired and (is_time or used_percent > self.used_percent):
            return DeletionReason.EXPIRED
        if self.bytes_max and log_bytes > self.bytes_max:
            return DeletionReason.TOO_MUCH
        return DeletionReason.FORCED if used_percent > self.forced_percent else None

    def is_full(self, used_percent: float) -> bool:
        """Whether messages are refused."""
        return used_percent >= self.full_percent


def parse_hours(text: str) -> frozenset[int]:
    """Hours of the day from a text such as `04` or `04;16`.

    Raises:
        ConfigError: a word is not an hour.
    """
    hours = set()
    for word in text.replace(",", ";").split(";"):
        hour = word.strip()
        if not (hour.isascii() and hour.isdigit() and int(hour) < 24):
            raise ConfigError(f"deleteWhen: {hour!r} is no hour from 00 to 23")
        hours.add(int(hour))
    return frozenset(hours)
