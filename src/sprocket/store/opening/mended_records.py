"""Mends queue offsets and queue numbers of records, which no checksum covers, during a replay.

A kill leaves the queues' entries behind the place from which they are replayed: they say where a
record belongs. After a loss of power the neighbours of a record say it. The record is corrected in
the log, because consumers take its offset from there.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable
from itertools import islice

from sprocket.message.record import FIXED_BYTES, QUEUE_NUMBER_AT, QUEUE_OFFSET_AT
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.consume_queue import ENTRY, ENTRY_BYTES
from sprocket.store.views.queues import ConsumeQueues
from sprocket.store.views.record_batch import QUEUE_FIELDS, RecordBatch
from sprocket.store.views.replay import replayed, whole_record
from sprocket.store.views.right_offsets import OffsetEvidence, right_offsets
from sprocket.store.views.tag_codes import TAGS_ONLY

logger = logging.getLogger(__name__)

_NUMBER, _OFFSET = struct.Struct(">i"), struct.Struct(">q")
#: The next record of a queue is searched in so many batches, of 1 MiB each.
_BATCHES_MAX = 16
#: The right queue of a record is searched among so many queues of its topic.
_QUEUES_MAX = 64

#: Queue offset, log offset, bytes and tag code of a record.
_Row = list[int]


class MendedRecords:
    """Corrects the records of a replay before the views receive them."""

    def __init__(self, log: CommitLog, queues: ConsumeQueues) -> None:
        self._log = log
        self._queues = queues

    def mend(self, batch: RecordBatch) -> None:
        """Corrects queue numbers, then queue offsets, in the log and in a batch."""
        # Nearly always all offsets are the expected ones, which one comparison of lists shows.
        for topic, queues in batch.queues.items():
            if self._has_batches(topic, queues):
                self._renumber_batches(batch, topic)
                continue
            odd = [number for number, flat in queues.items() if not self._fits(topic, number, flat)]
            for number in odd:
                self._move(batch, topic, number)
            for number in queues if odd else ():
                flat = queues[number]
                if flat and not self._fits(topic, number, flat) and self._is_sound(topic, number):
                    self._renumber(batch, topic, number)

    def _renumber_batches(self, batch: RecordBatch, topic: str) -> None:
        for number, flat in batch.queues[topic].items():
            expected, is_right = self._expected(topic, number), True
            for offset, log_offset, *_ in _rows(flat):
                is_right = is_right and offset == expected
                expected = offset + batch.count_of(log_offset)
            if flat and not is_right and self._is_sound(topic, number):
                self._renumber(batch, topic, number)

    def _has_batches(self, topic: str, numbers: Iterable[int]) -> bool:
        return any(isinstance(self._queues.make(topic, each), BatchQueue) for each in numbers)

    def _fits(self, topic: str, number: int, flat: list[int]) -> bool:
        expected = self._expected(topic, number)
        offsets = flat[::QUEUE_FIELDS]
        return expected is not None and offsets == [*range(expected, expected + len(offsets))]

    def _expected(self, topic: str, number: int) -> int | None:
        queue = self._queues.by_name.get((topic, number))
        return queue.max_offset if queue is not None and queue.has_entries else None

    def _is_sound(self, topic: str, number: int) -> bool:
        """Whether the queue's last entry is right, so that its end tells which offset is next."""
        queue = self._queues.by_name.get((topic, number))
        if queue is None or not queue.has_entries:
            return True
        offset = queue.max_offset - 1
        if isinstance(queue, BatchQueue):
            offset = next(queue.units(offset)).first_offset
        record = whole_record(self._log, queue.position(offset)[0], checks_body=False)
        return record is not None and (
            (record.topic, record.queue_number, record.queue_offset) == (topic, number, offset)
        )

    def _has_entry(self, topic: str, number: int, offset: int, row: _Row) -> bool:
        """Whether the files of a queue have an entry with an offset for a record."""
        queue = self._queues.by_name.get((topic, number))
        if isinstance(queue, BatchQueue):
            return queue.has_unit(offset, row[1])
        if queue is None or offset < 0 or not queue.files.has(offset * ENTRY_BYTES):
            return False
        segment = queue.files.at(offset * ENTRY_BYTES)
        at = offset * ENTRY_BYTES - segment.start
        start, size, _ = ENTRY.unpack(segment.file[at : at + ENTRY_BYTES])
        return bool((start, size) == (row[1], row[2]))

    def _move(self, batch: RecordBatch, topic: str, number: int) -> None:
        """Moves records to the queues whose entries say that they belong there."""
        queues = batch.queues[topic]
        expected = self._expected(topic, number)
        others = [
            other
            for name, other in islice(self._queues.by_name, _QUEUES_MAX)
            if name == topic and other != number
        ]
        kept: list[_Row] = []
        for row in _rows(queues[number]):
            right = None
            if row[0] != expected and not self._has_entry(topic, number, row[0], row):
                right = next((o for o in others if self._has_entry(topic, o, row[0], row)), None)
            if right is None:
                kept.append(row)
                expected = row[0] + 1
                continue
            self._write(row[1] + QUEUE_NUMBER_AT, _NUMBER.pack(right))
            logger.warning(
                "the message at log offset %d is of queue %d of %s, not %d: mended",
                row[1], right, topic, number,
            )  # fmt: skip
            moved = sorted([*_rows(queues.setdefault(right, [])), row], key=lambda each: each[1])
            queues[right] = [field for each in moved for field in each]
        queues[number] = [field for row in kept for field in row]

    def _renumber(self, batch: RecordBatch, topic: str, number: int) -> None:
        """Corrects the offsets of a queue's records."""
        flat = batch.queues[topic][number]
        rows = _rows(flat)
        before = self._last_log_offset(topic, number)

        def between(at: int) -> int:
            last = rows[at - 1][1] if at else before
            return (rows[at][1] - last) // FIXED_BYTES

        evidence = OffsetEvidence(
            has_entry=lambda at, offset: self._has_entry(topic, number, offset, rows[at]),
            between=between,
            following=self._following(batch.end, topic, number),
        )
        held = [batch.count_of(row[1]) for row in rows]
        offsets = [row[0] for row in rows]
        right = right_offsets(offsets, self._expected(topic, number), evidence, held)
        for row, offset in zip(rows, right, strict=True):
            if row[0] != offset:
                self._write(row[1] + QUEUE_OFFSET_AT, _OFFSET.pack(offset))
                logger.warning(
                    "the message at log offset %d is message %d of queue %d of %s, not %d: mended",
                    row[1], offset, number, topic, row[0],
                )  # fmt: skip
        flat[::QUEUE_FIELDS] = right

    def _last_log_offset(self, topic: str, number: int) -> int:
        queue = self._queues.by_name.get((topic, number))
        if queue is None or not queue.has_entries:
            return 0
        return max(queue.position(queue.max_offset - 1)[0], 0)

    def _following(self, log_offset: int, topic: str, number: int) -> Callable[[], int | None]:
        def search() -> int | None:
            batches = replayed(self._log, log_offset, TAGS_ONLY, checks_bodies=True)
            for batch in islice(batches, _BATCHES_MAX):
                if flat := batch.queues.get(topic, {}).get(number):
                    return flat[0]
            return None

        return search

    def _write(self, log_offset: int, content: bytes) -> None:
        """Corrects bytes of a record; the start syncs the log that was replayed."""
        segment = self._log.segments.at(log_offset)
        at = log_offset - segment.start
        segment.buffer[at : at + len(content)] = content


def _rows(flat: list[int]) -> list[_Row]:
    return [flat[at : at + QUEUE_FIELDS] for at in range(0, len(flat), QUEUE_FIELDS)]
