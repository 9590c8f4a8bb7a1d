"""The log as replication uses it: a master reads its bytes, a slave appends what a master sends.

A slave's log is the master's, byte for byte. Bytes arrive in pieces of any size, so a record may
come in several; only whole records, each checked as recovery checks it, are written and counted,
and the rest of a file behind its blank mark once all of it is there. What is not whole stays in
memory, one record at most, and is dropped with the connection: the next one begins at the log's
end. The views receive the records as they do in recovery, many at a time.

Source: CommitLog.getData and appendData of RocketMQ 5.x, which check nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from sprocket.base.errors import CorruptRecord, StoreError
from sprocket.base.watermark import Watermark
from sprocket.message.properties import PROPERTIES_BYTES_MAX
from sprocket.message.record import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    FIXED_BYTES,
    MAGIC,
    MAGIC_LONG_TOPIC,
)
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.consume_queue import ConsumeQueue
from sprocket.store.views.lite_queues import LiteQueues
from sprocket.store.views.queues import ConsumeQueues
from sprocket.store.views.record_batch import QUEUE_FIELDS, RecordBatch
from sprocket.store.views.replay import RecordScanner
from sprocket.store.views.view import View
from sprocket.store.writing.flush import Flush
from sprocket.store.writing.running_flags import RunningFlags

#: Topic, hosts and lengths of a record: more than these bytes besides body and properties never.
_FRAME_BYTES_MAX = 4096
#: A queue of a slave that has messages may miss at most so many before the next one.
_GAP_MAX = 300_000
#: No queue has a higher offset: its entry's place in the files would not fit into 63 bits.
_OFFSET_MAX = 1 << 56


class CopyMismatch(StoreError):
    """Bytes of a master's log do not continue this log; the text gives the reason."""


class ReplicaLog:
    """The log of one store. Nothing here waits.

    Attributes:
        appended: log offset after the last record; rises with each append and each copy.
    """

    __slots__ = (
        "_body_max", "_confirmed", "_deleted", "_flags", "_flush", "_lite", "_log",
        "_on_append", "_queues", "_scanner", "_views", "appended",
    )  # fmt: skip

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        lite: LiteQueues,
        views: Sequence[View],
        *,
        confirmed: ConfirmedOffsets | None,
        flush: Flush,
        flags: RunningFlags,
        scanner: RecordScanner,
        body_max: Callable[[], int],
        appended: Watermark,
        deleted: DeletedTopics,
        on_append: Callable[[], None] | None,
    ) -> None:
        """
        Args:
            views: receive the records, after the queues; that of lite topics is among them.
            body_max: gives the largest body that is accepted, bytes.
            deleted: which topics were deleted, and where.
        """
        self._log = log
        self._queues = queues
        self._lite = lite
        self._views = tuple(views)
        self._confirmed = confirmed
        self._flush = flush
        self._flags = flags
        self._scanner = scanner
        self._body_max = body_max
        self._deleted = deleted
        self._on_append = on_append
        self.appended = appended

    @property
    def start(self) -> int:
        """Log offset of the first record."""
        return self._log.start

    @property
    def end(self) -> int:
        """Log offset after the last record."""
        return self._log.end

    @property
    def is_empty(self) -> bool:
        """Whether there never was anything in the log."""
        return not self._log.end and not self._log.segments.starts

    @property
    def queue_count(self) -> int:
        """How many queues there are, with or without messages."""
        return len(self._queues.by_name)

    def newest(self) -> int:
        """Log offset of the newest record that is in a queue; -1 if there is none."""
        found = (each for each in self._queues.by_name.values() if each.has_entries)
        return max((each.position(each.max_offset - 1)[0] for each in found), default=-1)

    def begin(self, safe: Sequence[Watermark], *, confirmed: int | None = None) -> None:
        """Counts what recovery found as appended, and as safe all that is before `confirmed`."""
        end = self._log.end
        self.appended.rise(end)
        for mark in safe:
            mark.rise(end if confirmed is None else confirmed)
        if self._confirmed is not None:
            self._confirmed.begin([*self._queues.by_name.values(), self._lite.shared], end)

    def confirm(self) -> None:
        """Shows readers what has become safe; see `ConfirmedOffsets`."""
        if self._confirmed is not None:
            self._confirmed.advance()

    def read(self, start: int, bytes_max: int) -> memoryview:
        """Bytes of the log from an offset on, in one file; none at the log's end. No copy.

        Raises:
            OffsetOutOfRange: no file holds them, because they are deleted.
        """
        file_bytes = self._log.segments.file_bytes
        end = min(start + bytes_max, self._log.end, start - start % file_bytes + file_bytes)
        return memoryview(b"") if start >= end else self._log.slice(start, end)

    def accept_messages(self, is_accepting: bool = True) -> None:
        """Has the store accept messages of its own, or only what a master sends."""
        self._flags.copy(not is_accepting)

    def whole(self) -> AbstractContextManager[None]:
        """Shows what is not confirmed as well; see `ConfirmedOffsets.all_shown`."""
        return nullcontext() if self._confirmed is None else self._confirmed.all_shown()

    def deleted_topics(self) -> list[str]:
        """The topics that were deleted, also those that were made again."""
        return self._deleted.names()

    def deleted_at(self, topic: str) -> int:
        """The log offset before which a topic's records are deleted; 0 if none are."""
        return self._deleted.end_of(topic)

    def delete_before(self, log_offsets: Mapping[str, int]) -> None:
        """Removes queues of topics that end before a log offset, where a master deleted the topic.

        Raises:
            StoreError: the disk refuses the file of deleted topics; the queues still exist.
        """
        before, start = self._deleted.end_of, self._log.start
        new = {name: at for name, at in log_offsets.items() if at > max(before(name), start)}
        if not new:
            return
        try:
            self._deleted.record_all(new, log_start=start)
        except OSError as error:
            raise StoreError(f"topics {', '.join(new)} cannot be deleted: {error}") from error
        self._queues.remove_deleted(lambda topic: new.get(topic, 0))
        self._lite.forget_deleted()
        if self._confirmed is not None:
            for topic in new.keys() - {topic for topic, _ in self._queues.by_name}:
                self._confirmed.forget(topic)

    def copy(self) -> LogCopy:
        """Takes bytes from one connection to a master, from the log's end on."""
        return LogCopy(self)

    def file_left(self) -> int:
        """Bytes from the log's end to the end of its file."""
        file_bytes: int = self._log.segments.file_bytes
        return file_bytes - self._log.end % file_bytes

    def check(self) -> None:
        """
        Raises:
            DiskFull, StoreError, ClosedError: nothing can be written now.
        """
        if self._flags.blocked is not None:
            raise self._flags.blocked.with_traceback(None)

    def begin_at(self, offset: int) -> None:
        """Has an empty log begin at this offset.

        Raises:
            CopyMismatch: no file begins there.
        """
        file_bytes = self._log.segments.file_bytes
        if offset % file_bytes:
            raise CopyMismatch(
                f"the master's log begins at {offset}, where none of our files of {file_bytes} "
                "bytes begins: store.log_file_bytes (mappedFileSizeCommitLog) must be the master's"
            )
        self._log.begin_at(offset)
        self._flush.has_nothing_before(offset)

    def part(self, data: memoryview) -> int | None:
        """The size of the record that begins with `data` at the log's end; None if it is a blank.

        Raises:
            CopyMismatch: no record of this log begins so.
        """
        size, magic = BLANK.unpack_from(data)
        left = self.file_left()
        if magic == BLANK_MAGIC and size == left:
            return None
        size_max = self._body_max() + PROPERTIES_BYTES_MAX + _FRAME_BYTES_MAX
        if magic not in (MAGIC, MAGIC_LONG_TOPIC) or size < FIXED_BYTES:
            raise CopyMismatch(
                f"at log offset {self._log.end} the master has no record and no end of a file: "
                "its log is not the one that this is a copy of, or its files have another size"
            )
        if size > size_max or size + BLANK_BYTES > left:
            raise CopyMismatch(
                f"the master's record at log offset {self._log.end} has {size} bytes: "
                "store.message_bytes_max (maxMessageSize) and store.log_file_bytes "
                "(mappedFileSizeCommitLog) must be as the master's"
            )
        return int(size)

    def take(self, data: memoryview) -> int:
        """Writes the whole records at the beginning of some bytes of one file, at least one.

        Returns:
            How many bytes they have.

        Raises:
            CopyMismatch: the first is not whole, or does not belong here.
            DiskFull: there is no room; nothing is changed.
            StoreError: the store is damaged, and is closed for good.
        """
        log = self._log
        try:
            batch, size = self._scanner.take(data, log.end, 0)
        except CorruptRecord as error:
            raise CopyMismatch(f"the master's record at log offset {log.end}: {error}") from error
        if size + BLANK_BYTES > self.file_left():
            raise CopyMismatch(
                f"the master's records from log offset {log.end} on leave no room for the end of "
                "a file: its files have another size"
            )
        self._make_room(batch)
        log.write(data[:size])
        log.newest_ms = batch.stored_ms
        try:
            self._queues.apply_batch(batch)
            for view in self._views:
                view.apply_batch(batch)
        except StoreError as error:  # half of the views have the records: only a start mends that
            failure = StoreError(f"copied records could not be put into their queues: {error}")
            self._flags.fail(failure)
            raise failure from error
        if self._confirmed is not None:
            self._confirmed.apply_batch(batch)
        self._has_grown()
        return size

    def write_behind(self, skipped: int, rest: memoryview) -> None:
        """Writes bytes behind the blank mark at the log's end; most are zeros, and stay holes.

        Args:
            skipped: how many bytes behind the log's end came before them.
        """
        if skipped < BLANK_BYTES:
            rest, skipped = rest[BLANK_BYTES - skipped :], BLANK_BYTES
        if any(rest):
            self._log.write_behind(self._log.end + skipped, rest)

    def end_file(self) -> None:
        """Moves the log's end behind the blank rest of its file."""
        self._log.end_file()
        self._has_grown()

    def _has_grown(self) -> None:
        self.appended.rise(self._log.end)
        if self._on_append is not None:
            self._on_append()

    # All that can be refused is checked, and room is made, before anything is written.
    def _make_room(self, batch: RecordBatch) -> None:
        self._queues.note_kinds(batch)
        for topic, queues in batch.queues.items():
            for number, flat in queues.items():
                try:
                    queue = self._queues.make(topic, number)
                except IllegalDraft as error:
                    raise CopyMismatch(f"the master's records: {error}") from error
                _check_offsets(queue, flat, batch)
                if flat[0] == queue.max_offset:
                    queue.make_room(len(flat) // QUEUE_FIELDS)


def _check_offsets(queue: ConsumeQueue, flat: Sequence[int], batch: RecordBatch) -> None:
    """Refuses queue offsets behind a gap, which only a damaged record has. A queue without
    messages may begin anywhere, and one whose topic was deleted and made again at 0 again."""
    expected = queue.max_offset if queue.has_entries else flat[0]
    for offset, log_offset in zip(flat[::QUEUE_FIELDS], flat[1::QUEUE_FIELDS], strict=True):
        if not 0 <= offset <= min(expected + _GAP_MAX, _OFFSET_MAX):
            raise CopyMismatch(
                f"queue {queue.topic} {queue.number} of the master goes on at {offset}, and the "
                f"next message is {expected}"
            )
        expected = offset + batch.count_of(log_offset)


class LogCopy:
    """Takes the bytes of a master's log that arrive on one connection.

    Attributes:
        end: log offset up to which bytes have arrived.
    """

    __slots__ = ("_log", "_rest", "_skipped", "end")

    def __init__(self, log: ReplicaLog) -> None:
        self._log = log
        #: The beginning of a record that is not whole yet.
        self._rest = bytearray()
        #: Bytes that have arrived of the blank rest of a file.
        self._skipped = 0
        self.end = log.end

    def append(self, offset: int, data: bytes) -> None:
        """Writes what is whole of the next bytes, and keeps the rest.

        After an error, nothing more can be appended here: the next connection begins at the log's
        end.

        Raises:
            CopyMismatch: they are not the next bytes of this log.
            DiskFull: there is no room for them.
            StoreError, ClosedError: the store accepts nothing.
        """
        log = self._log
        log.check()
        if offset != self.end:
            if not (log.is_empty and offset):
                raise CopyMismatch(
                    f"the master sends its log from {offset} on, and this one ends at {self.end}"
                )
            log.begin_at(offset)
        self.end = offset + len(data)
        if self._rest:
            self._rest += data
            data = bytes(self._rest) if self._is_whole() else b""
        left = memoryview(data)
        while left:
            taken = self._take(left)
            if not taken:
                break
            left = left[taken:]
        if data:
            self._rest = bytearray(left)

    def _is_whole(self) -> bool:
        """Whether the record that has begun has all its bytes."""
        if len(self._rest) < BLANK_BYTES:
            return False
        size = self._log.part(memoryview(self._rest)[:BLANK_BYTES])
        return size is None or len(self._rest) >= size

    def _take(self, data: memoryview) -> int:
        """Takes whole records, or some of a blank. Returns how many bytes; 0 if more must come."""
        log, left = self._log, self._log.file_left()
        if self._skipped or left < BLANK_BYTES:
            return self._skip(data[: left - self._skipped], left)
        if len(data) < BLANK_BYTES:
            return 0
        size = log.part(data)
        if size is None:
            return self._skip(data[:left], left)
        return log.take(data[:left]) if size <= len(data) else 0

    def _skip(self, data: memoryview, left: int) -> int:
        self._log.write_behind(self._skipped, data)
        self._skipped += len(data)
        if self._skipped == left:
            self._log.end_file()
            self._skipped = 0
        return len(data)
