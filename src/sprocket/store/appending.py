"""Writes messages: the one place where records, and through them entries, come into being.

A message is checked, gets its place in the log and in its queue, is encoded straight into the
mapped file, and goes into the views. Nothing here waits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sprocket.base.errors import ClosedError
from sprocket.base.ports import Clock
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.properties import PROPERTIES_BYTES_MAX
from sprocket.message.record import Draft, Encoder, record_bytes
from sprocket.store.commit_log import CommitLog
from sprocket.store.consume_queue import ConsumeQueue
from sprocket.store.drafts import IllegalDraft, check_numbers, check_sizes
from sprocket.store.queues import ConsumeQueues
from sprocket.store.views import IN_NO_QUEUE, Entry, Fold


class Appended(NamedTuple):
    """Where a message was stored.

    Attributes:
        log_offset: where its record begins.
        queue_offset: its index in its queue.
        record_bytes: how large its record is.
        stored_ms: when.
        end: log offset after its record; await `flushed` to reach it to know it on the disk.
    """

    log_offset: LogOffset
    queue_offset: QueueOffset
    record_bytes: int
    stored_ms: int
    end: LogOffset


class Appending:
    """Appends to one log.

    Attributes:
        refusal: why nothing can be appended now; None if it can.
        newest_ms: when the last message was stored.
        on_append: is told of each message; None if nobody wants to know.
    """

    __slots__ = (
        "_body_max", "_by_name", "_clock", "_encoder", "_log", "_queues", "_store_host",
        "_unchecked_bytes", "_views", "newest_ms", "on_append", "refusal",
    )  # fmt: skip

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        clock: Clock,
        encoder: Encoder,
        *,
        body_max: int,
        views: Sequence[Fold] = (),
    ) -> None:
        """
        Args:
            body_max: largest body that is taken.
            views: what besides the queues is told of each record.
        """
        self._log = log
        self._queues = queues
        self._by_name = queues.by_name
        self._clock = clock
        self._encoder = encoder
        self._store_host = encoder.store_host
        self._body_max = body_max
        self._views = tuple(views)
        #: A record of this size has neither too large a body nor too large properties.
        self._unchecked_bytes = min(body_max, PROPERTIES_BYTES_MAX, log.record_bytes_max)
        self.refusal: Exception | None = ClosedError("the store is not open")
        self.newest_ms = 0
        self.on_append: Callable[[], None] | None = None

    def append(self, draft: Draft) -> Appended:
        """See `Store.append`."""
        if self.refusal is not None:
            raise self.refusal
        queue = self._by_name.get((draft.topic, draft.queue_number))
        if queue is None:
            queue = self._queues.make(draft.topic, draft.queue_number)
        size = record_bytes(draft, queue.topic_part, self._store_host)
        if size > self._unchecked_bytes:
            self._check(draft, size)
        written = self._log
        if written.end + size > written.room_end:
            written.make_room(size)
        if not queue.has_room():
            queue.make_room()
        return self._write(draft, queue, size)

    def append_batch(self, drafts: Sequence[Draft]) -> list[Appended]:
        """See `Store.append_batch`."""
        if self.refusal is not None:
            raise self.refusal
        queues = [self._queues.make(draft.topic, draft.queue_number) for draft in drafts]
        sizes = [
            record_bytes(draft, queue.topic_part, self._store_host)
            for draft, queue in zip(drafts, queues, strict=True)
        ]
        for draft, size in zip(drafts, sizes, strict=True):
            self._check(draft, size)
            check_numbers(draft)
        self._log.reserve(sizes)
        for queue in dict.fromkeys(queues):
            queue.make_room(queues.count(queue) if len(drafts) > 1 else 1)
        appended = []
        for draft, queue, size in zip(drafts, queues, sizes, strict=True):
            if self._log.end + size > self._log.room_end:
                self._log.make_room(size)
            appended.append(self._write(draft, queue, size))
        return appended

    def _check(self, draft: Draft, size: int) -> None:
        check_sizes(draft, size, body_max=self._body_max, record_max=self._log.record_bytes_max)

    def _write(self, draft: Draft, queue: ConsumeQueue, size: int) -> Appended:
        """Writes a record for which there is room in the log and in its queue."""
        written = self._log
        log_offset = written.end
        self.newest_ms = stored_ms = self._clock.now_ms()
        queue_offset = 0 if draft.sys_flag & IN_NO_QUEUE else queue.max_offset
        place = (log_offset, queue_offset, stored_ms)
        entry = Entry(
            draft.topic,
            draft.queue_number,
            queue_offset,
            log_offset,
            size,
            draft.tag_code,
            stored_ms,
            draft.sys_flag,
            draft.keys,
            draft.unique_key,
        )
        try:
            self._encoder.encode_into(
                written.buffer, log_offset - written.base, draft, queue.topic_part, place
            )
            if not draft.sys_flag & IN_NO_QUEUE:
                queue.apply(entry)
        except struct.error as error:  # neither log nor queue has moved on yet
            at = log_offset - written.base
            written.buffer[at : at + size] = bytes(size)
            raise IllegalDraft(f"a number does not fit into its field: {error}") from error
        written.end = end = log_offset + size
        for view in self._views:
            view.apply(entry)
        if self.on_append is not None:
            self.on_append()
        return Appended._make((log_offset, queue_offset, size, stored_ms, end))
