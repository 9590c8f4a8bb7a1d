"""Reads from a queue: the status, the messages, and the next offset to read.

Source: DefaultMessageStore.getMessage and GetMessageStatus of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import msgspec

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, RemoteProtocolError
from sprocket.message.batch import decode
from sprocket.message.inner_batch import INNER_BATCH
from sprocket.message.offsets import QueueOffset
from sprocket.message.record import Record, parse, properties_part
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.consume_queue import BLANK_SIZE, DAMAGED_CODE, ENTRY, ConsumeQueue

#: A filtered read checks at most this many entries a call, so that it cannot block the event loop.
SCANNED_ENTRIES_MAX = 4096
#: The same if the records are read too: some 2 µs each.
SCANNED_RECORDS_MAX = 256


class ReadFilter(NamedTuple):
    """Which messages a read returns.

    Attributes:
        by_code: whether the message with this tag code may match; None: all may.
        by_properties: whether the message with these properties matches, given as the record holds
            them; None: all do.
    """

    by_code: Callable[[int], bool] | None = None
    by_properties: Callable[[memoryview], bool] | None = None

    @property
    def entries_max(self) -> int:
        """How many entries one call may check."""
        return SCANNED_ENTRIES_MAX if self.by_properties is None else SCANNED_RECORDS_MAX


#: Whether the record with this log offset and size is wanted.
_Judge = Callable[[int, int], bool]


class ReadStatus(Enum):
    """The result of a read; the names are RocketMQ's, and the reply's remark contains them."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


class ReadResult(msgspec.Struct, frozen=True):
    """What a read found.

    Attributes:
        next_offset: where to read next; if it is below `max_offset`, there are more entries.
        parts: the records, as slices of the log, not copies; adjacent records are one slice.
        count: how many records the parts hold.
        bytes: their total size.
    """

    status: ReadStatus
    next_offset: QueueOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    parts: list[memoryview]
    count: int
    bytes: int

    def records(
        self, *, on_damage: Callable[[CorruptRecord], None] | None = None
    ) -> Iterator[Record]:
        """The records, in their order.

        Args:
            on_damage: is called where a part cannot be read any further; the next part follows.

        Raises:
            CorruptRecord: a part cannot be read any further, and there is no `on_damage`.
        """
        for part in self.parts:
            at = 0
            while at < len(part):
                try:
                    record = parse(part, at)
                except CorruptRecord as error:
                    if on_damage is None:
                        raise
                    on_damage(error)
                    break
                yield record
                at += record.size


def read_queue(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    *,
    end: int,
    count_max: int,
    bytes_max: int,
    wants: ReadFilter | None,
) -> ReadResult:
    """Messages of a queue from an offset on.

    Args:
        end: where the queue ends for readers.
        count_max: at most this many messages; one is returned even if this is 0.
        bytes_max: at most this many bytes together; the first message may be longer.
        wants: which of them; None for all.
    """
    # One call reads entries of one file of the queue only, and slices of one file of the log if it
    # can. A reader that gets fewer messages than it may asks again from `next_offset`; so there is
    # no loop over files here, and no call that takes long.
    low, high = queue.min_offset, end
    if not low <= offset < high:
        if low <= offset <= queue.max_offset and offset > high:  # another master has shown them
            return _nothing(ReadStatus.OFFSET_OVERFLOW_ONE, offset, low, high)
        return _outside(offset, low, high)
    count_max = max(count_max, 1)
    if isinstance(queue, BatchQueue):
        return _read_batches(
            log, queue, offset, end=end, count_max=count_max, bytes_max=bytes_max, wants=wants
        )
    try:
        entries_max = count_max if wants is None else wants.entries_max
        raw = queue.entries(offset, min(entries_max, high - offset))
    except OffsetOutOfRange:
        return _nothing(ReadStatus.OFFSET_FOUND_NULL, queue.next_file_offset(offset), low, high)
    by_code, judge = (None, None) if wants is None else (wants.by_code, _judge(log, wants))
    selected = _select(raw, log.start, count_max, bytes_max=bytes_max, by_code=by_code, judge=judge)
    next_offset = offset + selected.scanned
    if not selected.records:
        removed = ReadStatus.MESSAGE_WAS_REMOVING
        status = removed if selected.has_removed else ReadStatus.NO_MATCHED_MESSAGE
        return _nothing(status, next_offset, low, high)
    try:
        parts = log.slices(selected.runs)
    except OffsetOutOfRange:  # a file of the log is missing: skip its messages one by one
        if selected.records == 1:
            return _nothing(ReadStatus.MESSAGE_WAS_REMOVING, next_offset, low, high)
        return read_queue(
            log, queue, offset, end=end, count_max=1, bytes_max=bytes_max, wants=wants
        )
    return ReadResult(
        ReadStatus.FOUND,
        QueueOffset(next_offset),
        QueueOffset(low),
        QueueOffset(high),
        parts,
        selected.records,
        selected.bytes,
    )


# Whole records are returned, from the one that holds the offset on: readers leave out what comes
# before it. A batch seldom has a tag of its own, so one without is returned to those who choose by
# tags, and their clients look into it. Each unit is read by itself: there are few.
def _read_batches(
    log: CommitLog,
    queue: BatchQueue,
    offset: int,
    *,
    end: int,
    count_max: int,
    bytes_max: int,
    wants: ReadFilter | None,
) -> ReadResult:
    low, by_code = queue.min_offset, None if wants is None else wants.by_code
    judge = None if wants is None else _judge_of_any(log, wants)
    runs: list[tuple[int, int]] = []
    scanned = count = total = 0
    next_offset, has_removed = offset, False
    try:
        for unit in queue.units(offset):
            start, size, code = unit.log_offset, unit.record_bytes, unit.tag_code
            is_over = count + unit.messages > count_max or total + size > bytes_max
            if not next_offset < unit.end <= end:  # it is not for readers yet, or damaged
                if scanned:
                    break
                gone = queue.next_unit_offset(offset, end)
                return _nothing(ReadStatus.MESSAGE_WAS_REMOVING, gone, low, end)
            if scanned >= SCANNED_RECORDS_MAX or (count and is_over):
                break
            scanned += 1
            next_offset = unit.end
            if start < log.start or size == BLANK_SIZE or code == DAMAGED_CODE:
                has_removed = True
                continue
            if by_code is not None and code and not by_code(code):
                continue
            if judge is not None and not judge(start, size):
                continue
            runs.append((start, start + size))
            count, total = count + unit.messages, total + size
        if runs:
            return ReadResult(
                ReadStatus.FOUND,
                QueueOffset(next_offset),
                QueueOffset(low),
                QueueOffset(end),
                log.slices(runs),
                count,
                total,
            )
    except OffsetOutOfRange:  # a file is missing: what it held is skipped
        if not scanned:
            gone = min(queue.next_file_offset(offset), end)
            return _nothing(ReadStatus.OFFSET_FOUND_NULL, gone, low, end)
        has_removed = True
    removed, none = ReadStatus.MESSAGE_WAS_REMOVING, ReadStatus.NO_MATCHED_MESSAGE
    return _nothing(removed if has_removed else none, next_offset, low, end)


def _judge_of_any(log: CommitLog, wants: ReadFilter) -> _Judge | None:
    """Whether a record is wanted: a batch is if one of its messages is."""
    by_properties = wants.by_properties
    if by_properties is None:
        return None

    def is_wanted(at: int, size: int) -> bool:
        try:
            record = parse(log.record_at(at))
            if not record.sys_flag & INNER_BATCH:
                return by_properties(record.properties)
            return any(by_properties(memoryview(t.encode())) for _, _, t in decode(record.body))
        except OffsetOutOfRange:  # it is skipped when the records are taken
            return True
        except (CorruptRecord, RemoteProtocolError):
            return False

    return is_wanted


def _judge(log: CommitLog, wants: ReadFilter) -> _Judge | None:
    by_properties = wants.by_properties
    if by_properties is None:
        return None
    start = end = 0
    buffer = memoryview(b"")

    def is_wanted(at: int, size: int) -> bool:
        nonlocal start, end, buffer
        try:
            if not start <= at or at + size > end:
                segment = log.segments.at(at)
                start, end, buffer = segment.start, min(segment.end, log.end), segment.buffer
                if at + size > end:
                    return True
            return by_properties(properties_part(buffer, at - start, size))
        except OffsetOutOfRange:  # `read_queue` skips it when it takes the records
            return True
        except CorruptRecord:
            return False

    return is_wanted


class _Selected(NamedTuple):
    """Records that a read takes.

    Attributes:
        scanned: how many entries were checked.
        records, bytes: how many records are taken, and their total size.
        has_removed: whether some of the entries point to records that are gone.
        runs: where the records are, [start, end) in the log; adjacent records are one run.
    """

    scanned: int
    records: int
    bytes: int
    has_removed: bool
    runs: list[tuple[int, int]]


def _select(
    raw: memoryview,
    log_start: int,
    count_max: int,
    *,
    bytes_max: int,
    by_code: Callable[[int], bool] | None,
    judge: _Judge | None,
) -> _Selected:
    """Which records to take, by their entries.

    Args:
        log_start: records that begin before it are gone.
        count_max, bytes_max: the most records, and the most bytes of them together; the first
            record may be longer.
    """
    # The entries alone show where the records are, how long, and which are adjacent. So a pull of
    # many messages becomes a few slices of the log, and no record is read for it.
    runs: list[tuple[int, int]] = []
    run_start = run_end = -1
    scanned = count = total = 0
    is_removed = False
    for start, size, tag_code in ENTRY.iter_unpack(raw):
        if by_code is not None and not by_code(tag_code):
            scanned += 1
            continue
        if start < log_start or size == BLANK_SIZE or tag_code == DAMAGED_CODE:
            is_removed = True
            scanned += 1
            continue
        if judge is not None and not judge(start, size):
            scanned += 1
            continue
        if total + size > bytes_max and count:
            break
        if start != run_end:
            if run_end >= 0:
                runs.append((run_start, run_end))
            run_start = start
        run_end = start + size
        total += size
        scanned += 1
        count += 1
        if count == count_max:
            break
    if count:
        runs.append((run_start, run_end))
    return _Selected(scanned, count, total, is_removed, runs)


def _outside(offset: int, low: int, high: int) -> ReadResult:
    if high == 0:
        return _nothing(ReadStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if offset < low:
        return _nothing(ReadStatus.OFFSET_TOO_SMALL, low, low, high)
    if offset == high:
        return _nothing(ReadStatus.OFFSET_OVERFLOW_ONE, high, low, high)
    return _nothing(ReadStatus.OFFSET_OVERFLOW_BADLY, high, low, high)


def _nothing(status: ReadStatus, next_offset: int, low: int, high: int) -> ReadResult:
    return ReadResult(
        status, QueueOffset(next_offset), QueueOffset(low), QueueOffset(high), [], 0, 0
    )


#: RocketMQ makes a queue at its first use, so a missing queue counts as one without messages.
NO_QUEUE = _nothing(ReadStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
