"""The queues as they are stored, also where readers do not see them yet.

A new master keeps all that its log has, and what of it is confirmed it learns a moment later. So
its own parts, which continue where the last master was, read what consumers must not see yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.message.offsets import QueueOffset
from sprocket.message.record import Record, parse
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.reading.queue_reader import NO_QUEUE, ReadResult, read_queue
from sprocket.store.views.consume_queue import ConsumeQueue
from sprocket.store.views.replay import after_blank


class StoredQueues:
    """The queues of one store; nothing is changed."""

    __slots__ = ("_by_name", "_log")

    def __init__(self, log: CommitLog, by_name: Mapping[tuple[str, int], ConsumeQueue]) -> None:
        self._log = log
        self._by_name = by_name

    def max_offset(self, topic: str, queue_number: int) -> QueueOffset:
        """The offset after the last message; 0 for a queue without messages."""
        queue = self._by_name.get((topic, queue_number))
        return QueueOffset(0 if queue is None else queue.max_offset)

    def records_from(self, log_offset: int) -> Iterator[Record]:
        """All records of the log from one on, in order."""
        while True:
            log_offset = after_blank(self._log, log_offset)
            try:
                record = parse(self._log.record_at(log_offset))
            except (OffsetOutOfRange, CorruptRecord):
                return
            yield record
            log_offset += record.size

    def read(
        self, topic: str, queue_number: int, offset: int, *, count_max: int, bytes_max: int
    ) -> ReadResult:
        """Messages from an offset on; see `Store.read`."""
        queue = self._by_name.get((topic, queue_number))
        if queue is None:
            return NO_QUEUE
        return read_queue(
            self._log, queue, offset, end=queue.max_offset,
            count_max=count_max, bytes_max=bytes_max, wants=None,
        )  # fmt: skip
