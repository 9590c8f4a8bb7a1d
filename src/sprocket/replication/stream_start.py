"""Where the stream to a slave begins: decided by its first report. Pure.

A slave that has a log reports its end and gets what follows. One without a log reports 0. RocketMQ
then begins with the last file of the log, so the slave never has the earlier ones; a setting can
begin with the first file, or with the file of a log offset. Files begin at multiples of their size
on both sides, so a stream to an empty slave does as well.

Source: DefaultHAConnection.WriteSocketService of RocketMQ 5.x. A slave that asks for bytes that are
deleted, or not there yet, gets nothing but heartbeats from it, for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import ConfigError

_LAST, _FIRST = "last", "first"


class LogRange(NamedTuple):
    """What a master has: log offsets [start, end), in files of one size."""

    start: int
    end: int
    file_bytes: int


class StreamStart(NamedTuple):
    """Where a stream begins.

    Attributes:
        offset: log offset of its first byte; if `refusal` is set, what the slave is told instead.
        refusal: why there is no stream; None if there is one.
    """

    offset: int
    refusal: str | None = None


class FreshStart(NamedTuple):
    """Where the stream to a slave without a log begins: the file that holds a log offset.

    Attributes:
        offset: the log offset; negative for the last file.
    """

    offset: int = -1

    @classmethod
    def parse(cls, text: str) -> FreshStart:
        """From `last`, `first` or a log offset.

        Raises:
            ConfigError: it is none of these.
        """
        if text == _LAST:
            return cls()
        if text == _FIRST:
            return cls(0)
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ConfigError(f"{text!r} is neither `last` nor `first` nor a log offset")
        return cls(int(text))

    def of(self, log: LogRange) -> int:
        """The log offset in a log: the beginning of a file that is there, or the log's end."""
        offset = log.end if self.offset < 0 else min(self.offset, log.end)
        return max(offset - offset % log.file_bytes, log.start)


def stream_start(report: int, log: LogRange, fresh: FreshStart) -> StreamStart:
    """Where the stream to a slave begins that reports this log offset first."""
    if report > log.end:
        return StreamStart(
            log.end,
            f"it has the log up to {report}, and this broker only up to {log.end}: its log is "
            "ahead of this one, or of another broker. Compare both; if this log is right, empty "
            "the slave's folder",
        )
    if report == 0:
        return StreamStart(fresh.of(log))
    if report < log.start:
        return StreamStart(
            log.start,
            f"it asks for the log from {report} on, and this broker's log begins at {log.start}: "
            "what is between is deleted. Empty the slave's folder, so that it begins anew",
        )
    return StreamStart(report)
