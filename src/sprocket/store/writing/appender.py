"""Appends messages: the only place where new records, and entries for them, are made.

A message is checked, gets its offsets in the log and in its queue, is encoded, is written to the
mapped file, and is applied to the views. Nothing here waits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import asdict, replace

from sprocket.base.errors import StoreError
from sprocket.base.ports import Clock
from sprocket.base.watermark import Watermark
from sprocket.message.draft_batch import DraftBatch, encode_batch
from sprocket.message.inner_batch import WRAPPED
from sprocket.message.lite import LiteName, LitePlace
from sprocket.message.properties import (
    INNER_BASE,
    INNER_COUNT,
    LITE_OFFSET,
    LITE_QUEUE,
    PROPERTIES_BYTES_MAX,
    encode,
)
from sprocket.message.record import BLANK_BYTES, Draft, Encoder, record_bytes
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.drafts import IllegalDraft, check_numbers, check_sizes
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.batch_unit import MESSAGES_MAX
from sprocket.store.views.consume_queue import ENTRY, ConsumeQueue
from sprocket.store.views.entry import IN_NO_QUEUE, BatchEntry, Entry, EntryColumns
from sprocket.store.views.key_index import KeyIndex
from sprocket.store.views.lite_queues import LiteQueues
from sprocket.store.views.pending_keys import HashedKeys
from sprocket.store.views.queues import ConsumeQueues
from sprocket.store.views.view import Fold
from sprocket.store.writing.running_flags import RunningFlags

_pack_entry = ENTRY.pack

#: An append returns what the views receive of the record.
Appended = Entry


class Stored(NamedTuple):
    """What a kernel has written.

    Attributes:
        used: how many bytes of the requests.
        replies: the frames that answer them.
        messages: how many.
        topics: name, messages, and bytes of records of each topic.
        hashes, log_offsets: for the key index, see `HashedKeys`.
    """

    used: int
    replies: bytes
    messages: int
    topics: Sequence[tuple[str, int, int]]
    hashes: bytes
    log_offsets: bytes


#: Writes records behind a log's end and their entries into queues, given by topic and number. It is
#: told the time, ms, and the size of the largest body; None if it has written nothing.
Kernel = Callable[[CommitLog, Mapping[tuple[str, int], ConsumeQueue], int, int], Stored | None]


class Appender:
    """Appends to one log."""

    __slots__ = (
        "_appended", "_body_max", "_by_name", "_encode", "_encoder", "_flags", "_index", "_log",
        "_now_ms", "_on_append", "_queues", "_views",
    )  # fmt: skip

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        clock: Clock,
        encoder: Encoder,
        *,
        flags: RunningFlags,
        body_max: int,
        appended: Watermark | None = None,
        views: Sequence[Fold] = (),
        on_append: Callable[[], None] | None = None,
    ) -> None:
        """
        Args:
            flags: hold the reason if nothing can be appended now.
            body_max: largest body that is accepted, bytes.
            appended: is raised to the end of the log after each append.
            views: receive each record, besides the queues.
            on_append: is called after each append.
        """
        self._flags = flags
        self._log = log
        self._queues = queues
        self._by_name = queues.by_name
        self._now_ms = clock.now_ms
        self._encoder = encoder
        self._encode = encoder.encode
        self._body_max = body_max
        self._appended = Watermark() if appended is None else appended
        self._views = tuple(views)
        #: The index if it is the only view; then records may be written by a kernel.
        self._index = views[0] if len(views) == 1 and isinstance(views[0], KeyIndex) else None
        self._on_append = on_append

    def change(self, body_max: int) -> None:
        """Accepts bodies up to another size, bytes."""
        self._body_max = body_max

    def body_max(self) -> int:
        """The largest body that is accepted, bytes."""
        return self._body_max

    def append(self, draft: Draft) -> Appended:
        """See `Store.append`."""
        return self.append_all((draft,))[0]

    def append_all(self, drafts: Sequence[Draft]) -> list[Appended]:
        """See `Store.append_all`."""
        if (refusal := self._flags.refusal) is not None:
            raise refusal.with_traceback(None)  # else it would keep every frame it passed
        appended: list[Appended] = []
        try:
            self._write(drafts, appended)
        except StoreError:
            if not appended:
                raise
        self._apply(appended)
        return appended

    def _apply(self, *runs: Sequence[Appended] | EntryColumns) -> None:
        for view in self._views:
            for appended in runs:
                view.apply_all(appended)
        self._appended.rise(self._log.end)
        if self._on_append is not None:
            self._on_append()

    def append_run(self, kernel: Kernel) -> Stored | None:
        """See `Store.append_run`."""
        if self._flags.refusal is not None or (self._views and self._index is None):
            return None
        log = self._log
        now_ms = self._now_ms()
        stored = kernel(log, self._by_name, now_ms, self._body_max)
        if stored is None:
            return None
        log.newest_ms = now_ms
        if self._index is not None:
            self._index.apply_hashed(HashedKeys(stored.hashes, stored.log_offsets, now_ms))
        self._appended.rise(log.end)
        if self._on_append is not None:
            self._on_append()
        return stored

    def append_inner(self, draft: Draft, count: int) -> Appended:
        """See `BatchTopics.append`."""
        if (refusal := self._flags.refusal) is not None:
            raise refusal.with_traceback(None)  # else it would keep every frame it passed
        queue = self._queues.make(draft.topic, draft.queue_number)
        if not 1 <= count <= MESSAGES_MAX:
            raise IllegalDraft(f"a batch holds 1 to {MESSAGES_MAX} messages, not {count}")
        if not isinstance(queue, BatchQueue):
            raise IllegalDraft(f"topic {draft.topic} keeps no batches as one record")
        base = {INNER_COUNT: str(count), INNER_BASE: str(queue.max_offset)}
        properties = draft.properties + encode(base).encode()
        stored = replace(draft, properties=properties, sys_flag=draft.sys_flag | WRAPPED)
        appended: list[Appended] = []
        queue.hold_next(count)
        try:
            self._write((stored,), appended)
        finally:
            queue.hold_next(1)
        entry = BatchEntry(**asdict(appended[0]), held=count)
        self._apply([entry])
        return entry

    def append_lite(self, draft: Draft, name: LiteName, lite: LiteQueues) -> Appended:
        """See `LiteTopics.append`."""
        if (refusal := self._flags.refusal) is not None:
            raise refusal.with_traceback(None)  # else it would keep every frame it passed
        place = LitePlace(name, lite.next_offset(name))
        lite.shared.make_room()
        appended: list[Appended] = []
        own = {LITE_QUEUE: name.queue, LITE_OFFSET: str(place.offset)}
        properties = draft.properties + encode(own).encode()
        self._write((replace(draft, properties=properties),), appended)
        lite.add(place, appended[0].log_offset, appended[0].record_bytes)
        self._apply(appended)
        return appended[0]

    def append_batch(self, drafts: Sequence[Draft]) -> list[Appended]:
        """See `Store.append_batch`."""
        if (refusal := self._flags.refusal) is not None:
            raise refusal.with_traceback(None)  # else it would keep every frame it passed
        self._make_room(drafts)
        return self.append_all(drafts) if drafts else []

    def append_batches(self, batches: Sequence[DraftBatch]) -> list[EntryColumns]:
        """See `Store.append_batches`."""
        if (refusal := self._flags.refusal) is not None:
            raise refusal.with_traceback(None)  # else it would keep every frame it passed
        appended: list[EntryColumns] = []
        stored_ms = self._now_ms()
        try:
            for batch in batches:
                appended.append(self._write_batch(batch, stored_ms) or self._write_each(batch))
        except StoreError:
            if not appended:
                raise
        self._apply(*appended)
        return appended

    def _write_each(self, batch: DraftBatch) -> EntryColumns:
        """Writes all messages of a batch one by one, or none."""
        appended: list[Appended] = []
        drafts = batch.drafts()
        self._make_room(drafts)
        self._write(drafts, appended)
        return EntryColumns.of(appended)

    # A batch costs a tenth of what its messages would cost alone: 1.3 µs a message of 100 B.
    def _write_batch(self, batch: DraftBatch, stored_ms: int) -> EntryColumns | None:
        """Writes a batch in one piece.

        Returns:
            None, having written nothing, if that is impossible: it does not fit into the log's
            file, or something about it is unusual.
        """
        log = self._log
        queue = self._queues.make(batch.topic, batch.queue_number)
        properties_max = PROPERTIES_BYTES_MAX - len(batch.properties_end)
        if (
            type(queue) is not ConsumeQueue
            or batch.sys_flag & IN_NO_QUEUE
            or max(map(len, batch.bodies)) > self._body_max
            or max(map(len, batch.properties)) > properties_max
        ):
            return None
        first, start = queue.max_offset, log.end
        try:
            records, log_offsets, sizes = encode_batch(
                self._encoder, batch, queue.topic_part, log_offset=start, queue_offset=first,
                stored_ms=stored_ms,
            )  # fmt: skip
            entries = b"".join(map(_pack_entry, log_offsets, sizes, batch.tag_codes))
        except struct.error:  # one by one, it is known which message is refused
            return None
        end = start + len(records)
        if end + BLANK_BYTES > log.file_end:
            return None
        if end > log.room_end:
            log.ensure_space(end - start)
        queue.make_room(len(sizes))
        queue.add_all(entries, log_offsets)
        log.buffer[start - log.base : end - log.base] = records
        log.end, log.newest_ms = end, stored_ms
        return EntryColumns(
            batch.topic,
            batch.queue_number,
            first,
            log_offsets,
            sizes,
            stored_ms,
            batch.sys_flag,
            batch.keys,
            batch.unique_keys,
        )

    def _make_room(self, drafts: Sequence[Draft]) -> None:
        """Checks messages and makes room for them, so that to write them cannot fail.

        Raises:
            IllegalDraft, DiskFull: one of them is refused.
        """
        queues = [self._queues.make(draft.topic, draft.queue_number) for draft in drafts]
        sizes = [self._record_bytes(*each) for each in zip(drafts, queues, strict=True)]
        for draft, size in zip(drafts, sizes, strict=True):
            self._check(draft, size)
            check_numbers(draft)
        self._log.reserve(sizes)
        for queue in dict.fromkeys(queues):
            queue.make_room(queues.count(queue) if len(drafts) > 1 else 1)

    def _record_bytes(self, draft: Draft, queue: ConsumeQueue) -> int:
        return record_bytes(draft, queue.topic_part, self._encoder.store_host)

    def _check(self, draft: Draft, size: int) -> None:
        check_sizes(draft, size, body_max=self._body_max, record_max=self._log.record_bytes_max)

    def _write(self, drafts: Sequence[Draft], appended: list[Appended]) -> None:
        """Writes messages: for each first the queue entry, which may fail, then the record.

        Args:
            appended: receives the entries of those that are written, also if a later one fails.
        """
        # Every send passes through this loop, so the log's end and buffer are used directly,
        # without a call. Making room in the log and adding the queue's entry can fail, and writing
        # the record cannot: so the record comes last, and a refused message leaves nothing behind.
        log, by_name, encode, add = self._log, self._by_name, self._encode, appended.append
        body_max = self._body_max
        log.newest_ms = stored_ms = self._now_ms()
        for draft in drafts:
            topic, number, sys_flag = draft.topic, draft.queue_number, draft.sys_flag
            queue = by_name.get((topic, number)) or self._queues.make(topic, number)
            if len(draft.body) > body_max or len(draft.properties) > PROPERTIES_BYTES_MAX:
                self._check(draft, self._record_bytes(draft, queue))
            queue_offset = 0 if sys_flag & IN_NO_QUEUE else queue.max_offset
            log_offset = -1
            try:
                while log_offset != log.end:  # making room may begin the next file
                    log_offset = log.end
                    record = encode(draft, queue.topic_part, log_offset, queue_offset, stored_ms)
                    size = len(record)
                    if log_offset + size > log.room_end:
                        self._check(draft, size)
                        log.ensure_space(size)
                if not sys_flag & IN_NO_QUEUE:
                    queue.add(_pack_entry(log_offset, size, draft.tag_code), log_offset)
            except struct.error as error:
                raise IllegalDraft(f"a number does not fit into its field: {error}") from error
            at = log_offset - log.base
            log.buffer[at : at + size] = record
            log.end = log_offset + size
            add(
                Entry(
                    topic,
                    number,
                    queue_offset,
                    log_offset,
                    size,
                    draft.tag_code,
                    stored_ms,
                    sys_flag,
                    draft.keys,
                    draft.unique_key,
                )
            )
