"""Queue offsets by the time at which messages were stored.

Source: ConsumeQueue.binarySearchInQueueByTime of RocketMQ 5.x, with the same results.
"""

from __future__ import annotations

from enum import Enum

from sprocket.base.errors import OffsetOutOfRange
from sprocket.message.offsets import QueueOffset
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.consume_queue import ConsumeQueue

#: RocketMQ's value for an unknown time.
NO_TIME = -1


class Boundary(Enum):
    """Which message is meant if none was stored at exactly the time."""

    #: The first one at or after the time; `max_offset` if there is none.
    LOWER = "lower"
    #: The last one at or before the time; the first message if there is none.
    UPPER = "upper"


def offset_at(
    log: CommitLog, queue: ConsumeQueue, time_ms: int, boundary: Boundary, *, end: int
) -> QueueOffset:
    """The offset of the message for a time; 0 in a queue without messages.

    Args:
        end: where the queue ends for readers.
    """
    if boundary is Boundary.LOWER:
        found = queue.first_offset_where(lambda start, _: _stored_ms(log, start) >= time_ms)
        return QueueOffset(min(found, end))
    after = queue.first_offset_where(lambda start, _: _stored_ms(log, start) > time_ms)
    return QueueOffset(max(min(after, end) - 1, queue.min_offset))


def time_of(log: CommitLog, queue: ConsumeQueue, offset: int) -> int:
    """When the message at an offset was stored, ms; -1 if it is not there."""
    if not queue.min_offset <= offset < queue.max_offset:
        return NO_TIME
    return _stored_ms(log, queue.position(offset)[0])


def _stored_ms(log: CommitLog, log_offset: int) -> int:
    if not log.start <= log_offset < log.end:
        return NO_TIME
    try:
        return log.stored_ms_at(log_offset)
    except OffsetOutOfRange:
        return NO_TIME
