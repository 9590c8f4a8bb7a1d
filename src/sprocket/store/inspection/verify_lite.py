"""Checks the shared queue of lite topics while the log is read: each record that has a lite topic
must have its entry there, in the log's order, and the entry must lead to the one before it of the
same lite topic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import FileBytes
from sprocket.message.lite import LiteName, place_of
from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.views.consume_queue import BLANK_SIZE, ENTRY, ENTRY_BYTES
from sprocket.store.views.lite_queue import NONE
from sprocket.store.views.lite_queues import MARK
from sprocket.store.views.record_batch import QUEUE_FIELDS, RecordBatch

_Entry = tuple[int, int, int]


class LiteCheck:
    """Compares records with the entries of the shared queue.

    Args:
        deleted: the deleted topics, whose records may have no entries; None if unknown.

    Attributes:
        count: how many entries were compared.
    """

    def __init__(self, store: InspectedStore, deleted: DeletedTopics | None) -> None:
        self._store = store
        self._deleted = deleted
        self._folder = f"{store.root}/litequeue/0"
        self._starts = sorted(
            int(name)
            for name in store.disk.names(self._folder)
            if len(name) == NAME_DIGITS and name.isascii() and name.isdigit()
        )
        self._entries = self._read()
        self._next = next(self._entries, None)
        #: The number of the last entry of each lite topic.
        self._last: dict[LiteName, int] = {}
        self._fault: Finding | None = None
        self.count = 0

    def _read(self) -> Iterator[tuple[int, _Entry]]:
        """The entries with their numbers, from the first one whose record the log still has."""
        for start in self._starts:
            file: FileBytes = self._store.disk.peek(self._path(start))
            data = bytes(file[0 : len(file) - len(file) % ENTRY_BYTES])
            for number, entry in enumerate(ENTRY.iter_unpack(data), start // ENTRY_BYTES):
                log_offset, size, _ = entry
                if size <= 0:
                    return
                if log_offset >= self._store.log.start and size != BLANK_SIZE:
                    yield number, entry

    def _path(self, start: int) -> str:
        return f"{self._folder}/{start:0{NAME_DIGITS}d}"

    def note(self, batch: RecordBatch) -> None:
        """Compares some consecutive records."""
        flats = [flat for queues in batch.queues.values() for flat in queues.values() if flat]
        if not flats or self._fault is not None:
            return
        log, first = self._store.log, min(flat[1] for flat in flats)
        start = first - first % log.file_bytes
        data = bytes(log.file(start)[first - start : batch.end - start])
        if data.find(MARK) < 0:
            return
        for log_offset, size in sorted(chain.from_iterable(map(_places, flats))):
            at = log_offset - first
            if self._fault is None and data.find(MARK, at, at + size) >= 0:
                self._compare(log_offset, size)

    def _compare(self, log_offset: int, size: int) -> None:
        try:
            record = self._store.log.record_at(log_offset, checks_body=False)
        except (OffsetOutOfRange, CorruptRecord):
            return
        place = place_of(record.topic, bytes(record.properties))
        if place is None:
            return
        number, entry = self._next or (-1, (-1, 0, 0))
        if entry[:2] != (log_offset, size):
            end = 0 if self._deleted is None else self._deleted.end_of(place.name.parent)
            if log_offset >= end:
                self._fail(number, f"the message at log offset {log_offset} has no entry")
            return
        if entry[2] not in (NONE, self._last.get(place.name, entry[2])) or entry[2] >= number:
            self._fail(number, f"its entry leads to {entry[2]}, which is of another lite topic")
        self._last[place.name] = number
        self.count += 1
        self._next = next(self._entries, None)

    # A crash may leave entries out, which the next start adds; and a store of RocketMQ has none.
    def _fail(self, number: int, text: str) -> None:
        position = max(number, 0) * ENTRY_BYTES
        start = max((each for each in self._starts if each <= position), default=0)
        self._fault = Finding(
            "queue", self._path(start), position - start, f"lite topics: {text}",
            self._store.was_stopped and bool(self._starts),
        )  # fmt: skip

    def findings(self) -> Iterator[Finding]:
        """What is wrong, once all of the log was compared."""
        if self._fault is not None:
            yield self._fault


def _places(flat: list[int]) -> Iterator[tuple[int, int]]:
    return zip(flat[1::QUEUE_FIELDS], flat[2::QUEUE_FIELDS], strict=True)
