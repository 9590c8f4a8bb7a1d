"""Times and durations of the service, which have seconds and nanoseconds, in ms. Pure."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def ms_of(value: Duration | Timestamp) -> int:
    """Milliseconds, rounded down."""
    return value.seconds * 1000 + value.nanos // 1_000_000


def duration(milliseconds: int) -> Duration:
    """A duration."""
    return Duration(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)


def timestamp(milliseconds: int) -> Timestamp:
    """A time, from ms since 1970 UTC."""
    return Timestamp(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)
