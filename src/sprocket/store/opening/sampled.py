"""Checks some entries of the views after an orderly stop, so that damage is not found by users.

It costs a few milliseconds, whatever the size of the store. `sprocket store verify` checks all.
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.errors import OffsetOutOfRange
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.opening.parts import StoreParts
from sprocket.store.views.consume_queue import (
    BLANK_SIZE,
    DAMAGED_CODE,
    ENTRY,
    ENTRY_BYTES,
    ConsumeQueue,
)
from sprocket.store.views.replay import whole_record

#: At most so many queues are checked: evenly chosen ones, if there are more.
_QUEUES_MAX = 64
#: Source: MixAll.LMQ_PREFIX of RocketMQ 5.x.
_LITE_PREFIX = "%LMQ%"


def sampled_fault(parts: StoreParts) -> str | None:
    """What is wrong with the views; None if nothing is found."""
    queues = [queue for queue in parts.queues.by_name.values() if queue.has_entries]
    for queue in queues[:: len(queues) // _QUEUES_MAX + 1]:
        fault = _queue_fault(queue, parts.log)
        if fault is not None:
            return f"queue {queue.number} of {queue.topic} {fault}"
    return parts.index.fault(parts.log) if parts.index in parts.views else None


def _queue_fault(queue: ConsumeQueue, log: CommitLog) -> str | None:
    # Java puts an entry behind a gap at another offset than its record has, so offsets are not
    # compared. A lite topic's entries lead to records of another topic.
    if queue.topic.startswith(_LITE_PREFIX):
        return None
    for offset in _offsets(queue):
        try:
            found = queue.entries(offset, 1)
        except OffsetOutOfRange:
            return f"lacks the file with entry {offset}"
        if len(found) != ENTRY_BYTES:  # units of a batch queue that overlap, or have a gap
            return f"has not one entry for offset {offset}"
        start, size, code = ENTRY.unpack(found)
        if size == BLANK_SIZE or code == DAMAGED_CODE or start < log.start:
            continue
        record = whole_record(log, start, checks_body=False)
        if record is None or (record.topic, record.queue_number, record.size) != (
            queue.topic,
            queue.number,
            size,
        ):
            return f"has an entry {offset} that leads to no message of it"
    return None


def _offsets(queue: ConsumeQueue) -> Iterator[int]:
    first, last = queue.first_stored, queue.max_offset - 1
    yield from dict.fromkeys((last, (first + last) // 2, first))
