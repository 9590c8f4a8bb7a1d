"""Compares consume queues with the log: entries with their records, and records with entries."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.message.hashing import tag_code
from sprocket.message.properties import TAGS, decode_bytes
from sprocket.message.topic import SCHEDULE
from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.inspection.verify_agreed import Agreed, Agreement
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.views.batch_unit import UNIT_BYTES, BatchUnit, units_in
from sprocket.store.views.consume_queue import BLANK_SIZE, DAMAGED_CODE, ENTRY, ENTRY_BYTES
from sprocket.store.views.replay import entry_of
from sprocket.store.views.tag_codes import TAGS_ONLY

#: At most this many faults of one queue are reported one by one; the others are counted.
TOLD_MAX = 20

_CHUNK = 1 << 20


def verify_queues(
    store: InspectedStore,
    newest: Mapping[tuple[str, int], tuple[int, int]],
    *,
    log_end: int,
    damaged: Sequence[tuple[int, int]],
    agreement: Agreement,
    advance: Callable[[int], None],
) -> Iterator[Finding | int]:
    """Findings, and between them the numbers of entries that were checked.

    Args:
        newest: offset and log offset of each queue's newest message, according to the log.
        log_end: log offset after the last record.
        damaged: damaged parts of the log, [start, end), which are reported already.
        agreement: entries that agree with their records.
        advance: is called with the number of bytes just checked.
    """
    deleted = deleted_topics(store)
    seen: set[tuple[str, int]] = set()
    for topic, number in store.queues():
        seen.add((topic, number))
        agreed = agreement.of(topic, number)
        kind = _BatchQueueCheck if agreed.is_batch else _Queue
        queue = kind(store, topic, number, log_end=log_end, damaged=damaged, agreed=agreed)
        yield from queue.verify(advance)
        yield queue.count
        offset, log_offset = newest.get((topic, number), (-1, -1))
        if log_offset >= (0 if deleted is None else deleted.end_of(topic)):
            yield from queue.ends(offset, log_offset)
    for topic, number in sorted(set(newest) - seen):
        offset, log_offset = newest[topic, number]
        if deleted is None or log_offset >= deleted.end_of(topic):
            text = f"messages up to offset {offset} are in the log, and it is not there: deleted?"
            yield Finding("queue", store.queue_folder(topic, number), 0, text, False, log_offset)


def deleted_topics(store: InspectedStore) -> DeletedTopics | None:
    """The deleted topics; None if their file cannot be read."""
    deleted = DeletedTopics(store.disk, store.root)
    try:
        deleted.load()
    except StoreError:  # the file is broken, which is reported with the other state files
        return None
    return deleted


class _Queue:
    """One queue.

    Attributes:
        count: number of entries checked.
        end: offset after the last entry.
    """

    def __init__(
        self,
        store: InspectedStore,
        topic: str,
        number: int,
        *,
        log_end: int,
        damaged: Sequence[tuple[int, int]],
        agreed: Agreed,
    ) -> None:
        self._store = store
        self._name = (topic, number)
        self._folder = store.queue_folder(topic, number)
        self._log_end = log_end
        self._damaged = [start for start, _ in damaged], [end for _, end in damaged]
        self._agreed = agreed
        self._faults = 0
        self._has_ended = False
        self.count = 0
        self.end = 0

    def verify(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Checks its files."""
        disk = self._store.disk
        names = [name for name in disk.names(self._folder) if len(name) == NAME_DIGITS]
        sizes = [disk.size(f"{self._folder}/{name}") or 0 for name in names]
        size = max(set(sizes), key=sizes.count, default=0)
        expected = int(names[0]) if names else 0
        for name, own_size in zip(names, sizes, strict=True):
            path = f"{self._folder}/{name}"
            advance(own_size)
            if own_size != size:
                text = f"it has {own_size} bytes, the others of this queue have {size}"
                yield Finding("queue", path, 0, text, is_fault=bool(own_size))
                continue
            if int(name) != expected and not self._has_ended:
                yield Finding("queue", path, 0, f"the file {expected:020d} before it is missing")
            expected = int(name) + size
            yield from self._file(path, int(name) // ENTRY_BYTES)
        if self._faults > TOLD_MAX:
            text = f"{self._faults - TOLD_MAX} more entries of this queue are wrong"
            yield Finding("queue", self._folder, 0, text)

    def _file(self, path: str, first: int) -> Iterator[Finding]:
        try:
            file = self._store.disk.peek(path)
        except FileNotFoundError:  # a broker has removed it since
            return
        offset, last = first, first + len(file) // ENTRY_BYTES
        while offset < last:
            at = (offset - first) * ENTRY_BYTES
            start, size, code = ENTRY.unpack(file[at : at + ENTRY_BYTES])
            if size <= 0:
                if not self._has_ended and any(file[at : at + ENTRY_BYTES]):
                    yield Finding("queue", path, at, f"entry {offset} is not valid")
                self._has_ended = True
                return
            if self._has_ended:
                yield Finding("queue", path, at, "entries before it are missing")
                self._has_ended = False
            agreed_to = min(self._agreed.end_of(offset), last)
            if agreed_to == offset:
                agreed_to += 1
                yield from self._compared(path, at, offset, (start, size, code))
            self.count += agreed_to - offset
            self.end = offset = agreed_to

    def _compared(
        self, path: str, at: int, offset: int, entry: tuple[int, int, int]
    ) -> Iterator[Finding]:
        start, size, code = entry
        is_gap = size == BLANK_SIZE or code == DAMAGED_CODE
        fault = None if is_gap else self._fault(offset, start, size, code)
        if fault is not None:
            self._faults += 1
            if self._faults <= TOLD_MAX:
                yield Finding("queue", path, at, f"entry {offset} {fault}", True, start)

    def _fault(self, offset: int, start: int, size: int, code: int) -> str | None:
        """What is wrong with an entry."""
        if start < self._store.log.start or self._is_damaged(start):
            return None
        if start >= self._log_end:
            may_be = self._store.is_live or not self._store.was_stopped
            return None if may_be else f"leads to log offset {start}, behind the end of the log"
        try:
            record = self._store.log.record_at(start, checks_body=False)
        except (CorruptRecord, OffsetOutOfRange) as error:
            return f"leads to log offset {start}, where no record begins: {error}"
        found = (record.topic, record.queue_number, record.queue_offset, record.size)
        if found != (*self._name, offset, size):
            return (
                f"leads to log offset {start}, where {record.topic} {record.queue_number} has its "
                f"message {record.queue_offset} of {record.size} bytes"
            )
        if self._name[0] != SCHEDULE:
            right = tag_code(decode_bytes(record.properties).get(TAGS))
            if right != code:
                return f"has the tag code {code}, its message has {right}"
        return None

    def _is_damaged(self, start: int) -> bool:
        starts, ends = self._damaged
        at = bisect_right(starts, start) - 1
        return at >= 0 and start < ends[at]

    def ends(self, offset: int, log_offset: int) -> Iterator[Finding]:
        """Checks whether it has an entry for its newest message in the log.

        Args:
            offset, log_offset: of that message.
        """
        marks = self._store.marks
        is_replayed = not self._store.was_stopped and (
            marks is None or log_offset >= marks.replay_from
        )
        if offset >= self.end and not is_replayed:
            text = f"it ends at {self.end}, but the log has its message {offset}"
            yield Finding("queue", self._folder, 0, text, True, log_offset)


class _BatchQueueCheck(_Queue):
    """One batch queue: it has units instead of entries."""

    def _file(self, path: str, first: int) -> Iterator[Finding]:
        try:
            file = self._store.disk.peek(path)
        except FileNotFoundError:  # a broker has removed it since
            return
        units = list(units_in(file[:]))
        at = len(units) * UNIT_BYTES
        if self._has_ended and units:
            yield Finding("queue", path, 0, "units before it are missing")
        elif any(file[at : at + UNIT_BYTES]):
            yield Finding("queue", path, at, f"unit {len(units)} is not valid")
        self._has_ended = at + UNIT_BYTES <= len(file)
        for place, unit in enumerate(units):
            if unit.first_offset < self.end:
                text = f"offset {unit.first_offset} is not behind {self.end - 1}"
                yield Finding("queue", path, place * UNIT_BYTES, text, True, unit.log_offset)
            self.count, self.end = self.count + 1, unit.end
            entry = (unit.log_offset, unit.record_bytes, unit.tag_code)
            yield from self._compared(path, place * UNIT_BYTES, unit.first_offset, entry)
            fault = self._count_fault(unit)
            if fault is not None:
                at = place * UNIT_BYTES
                yield Finding("queue", path, at, f"unit {place} {fault}", True, unit.log_offset)

    def _count_fault(self, unit: BatchUnit) -> str | None:
        try:
            record = self._store.log.record_at(unit.log_offset, checks_body=False)
        except (CorruptRecord, OffsetOutOfRange):  # it is reported, or expired
            return None
        held = entry_of(record, TAGS_ONLY).count
        if record.size != unit.record_bytes or held == unit.messages:
            return None
        return f"has {unit.messages} messages, its record {held}"
