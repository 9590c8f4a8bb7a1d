"""Writes messages: the one place where records, and through them entries, come into being.

A message is checked, gets its place in the log and in its queue, is encoded, moved into the mapped
file, and goes into the views. Nothing here waits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import msgspec

from sprocket.base.errors import ClosedError
from sprocket.base.ports import Clock
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.properties import PROPERTIES_BYTES_MAX
from sprocket.message.record import Draft, Encoder, record_bytes
from sprocket.store.commit_log import CommitLog
from sprocket.store.consume_queue import ENTRY, ConsumeQueue
from sprocket.store.drafts import IllegalDraft, check_numbers, check_sizes
from sprocket.store.queues import ConsumeQueues
from sprocket.store.views import IN_NO_QUEUE, Entry, Fold


class Appended(msgspec.Struct, gc=False):
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
        "_body_max", "_by_name", "_encode", "_log", "_now_ms", "_queues", "_store_host", "_views",
        "newest_ms", "on_append", "refusal",
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
        self._now_ms = clock.now_ms
        self._encode = encoder.encode
        self._store_host = encoder.store_host
        self._body_max = body_max
        self._views = tuple(views)
        self.refusal: Exception | None = ClosedError("the store is not open")
        self.newest_ms = 0
        self.on_append: Callable[[], None] | None = None

    def append(self, draft: Draft) -> Appended:
        """See `Store.append`."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)  # else it would keep every frame it passed
        queue = self._by_name.get((draft.topic, draft.queue_number))
        if queue is None:
            queue = self._queues.make(draft.topic, draft.queue_number)
        if len(draft.body) > self._body_max or len(draft.properties) > PROPERTIES_BYTES_MAX:
            self._check(draft, self._record_bytes(draft, queue))
        return self._write(draft, queue)

    def append_batch(self, drafts: Sequence[Draft]) -> list[Appended]:
        """See `Store.append_batch`."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)  # else it would keep every frame it passed
        queues = [self._queues.make(draft.topic, draft.queue_number) for draft in drafts]
        sizes = [self._record_bytes(*each) for each in zip(drafts, queues, strict=True)]
        for draft, size in zip(drafts, sizes, strict=True):
            self._check(draft, size)
            check_numbers(draft)
        self._log.reserve(sizes)
        for queue in dict.fromkeys(queues):
            queue.make_room(queues.count(queue) if len(drafts) > 1 else 1)
        return [self._write(*each) for each in zip(drafts, queues, strict=True)]

    def _record_bytes(self, draft: Draft, queue: ConsumeQueue) -> int:
        return record_bytes(draft, queue.topic_part, self._store_host)

    def _check(self, draft: Draft, size: int) -> None:
        check_sizes(draft, size, body_max=self._body_max, record_max=self._log.record_bytes_max)

    def _write(self, draft: Draft, queue: ConsumeQueue) -> Appended:
        """Writes a message: first its entry, which may fail, then its record, for which is room."""
        written = self._log
        log_offset = written.end
        self.newest_ms = stored_ms = self._now_ms()
        is_in_queue = not draft.sys_flag & IN_NO_QUEUE
        queue_offset = queue.max_offset if is_in_queue else 0
        try:
            record = self._encode(
                draft,
                queue.topic_part,
                log_offset=log_offset,
                queue_offset=queue_offset,
                stored_ms=stored_ms,
            )
            size = len(record)
            if log_offset + size > written.room_end:
                self._check(draft, size)
                written.make_room(size)
                return self._write(draft, queue)  # it may begin the next file
            if is_in_queue:
                queue.add(ENTRY.pack(log_offset, size, draft.tag_code), log_offset)
        except struct.error as error:
            raise IllegalDraft(f"a number does not fit into its field: {error}") from error
        at = log_offset - written.base
        written.buffer[at : at + size] = record
        written.end = end = log_offset + size
        if self._views:
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
            for view in self._views:
                view.apply(entry)
        if self.on_append is not None:
            self.on_append()
        return Appended(log_offset, queue_offset, size, stored_ms, end)  # type: ignore[arg-type]
