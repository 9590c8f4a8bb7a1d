"""The confirmed offset: how far readers see the log. Messages that may still be lost are hidden.

A consumer that has read a message may commit the offset after it. If the message is lost with the
power, the next one gets its offset, and that consumer skips it. So where senders wait until a
message is safe, readers wait too: they see the records before the confirmed offset. It is the
lowest of some watermarks of the log: how far it is on the disk, and whatever else makes a message
safe.

This view receives each record as it is appended. What recovery found counts as safe; in a group
with an elector it does so up to the confirmed offset that was saved, and the rest is hidden.

Source of the word: getConfirmOffset in DefaultMessageStore and CommitLog of RocketMQ 5.x, and for
what is saved StoreCheckpoint there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sprocket.base.watermark import Watermark
from sprocket.store.views.consume_queue import BLANK_SIZE, ConsumeQueue
from sprocket.store.views.entry import IN_NO_QUEUE, Entry, EntryColumns
from sprocket.store.views.record_batch import QUEUE_FIELDS, RecordBatch

_Name = tuple[str, int]

#: With more hidden records than this, some are dropped, so that these pieces are left.
_WAITING_MAX = 1 << 17
_PIECES = 1 << 10


class ConfirmedOffsets:
    """How far readers see each queue. A queue whose messages are all confirmed costs nothing.

    Args:
        watermarks: log offsets up to which records are safe, each in its own way; `advance` must be
            called after one has risen.

    Attributes:
        end: log offset up to which readers see the log.
    """

    __slots__ = ("_arrivals", "_coarsen_at", "_ends", "_waiting", "_watermarks", "end")

    def __init__(self, watermarks: Sequence[Watermark]) -> None:
        self._watermarks = tuple(watermarks)
        self.end = 0
        self._coarsen_at = _WAITING_MAX
        #: Records that readers do not see yet: log offset after each, its queue, next queue offset.
        self._waiting: deque[tuple[int, _Name, int]] = deque()
        #: Where queues with such records end for readers.
        self._ends: dict[_Name, int] = {}
        self._arrivals: dict[_Name, Watermark] = {}

    # The records are in the queues, and reading them all again would take long where a broker comes
    # back after days. So each queue shows what is hidden of it at once, when all of it is safe.
    def begin(self, queues: Iterable[ConsumeQueue], log_end: int) -> None:
        """Hides the records that recovery found and that are not safe.

        Args:
            queues: all queues.
            log_end: where the log ends.
        """
        self.advance()
        end = self.end
        if end >= log_end:
            return

        def is_hidden(start: int, size: int) -> bool:
            return start >= end or (size < BLANK_SIZE and start + size > end)

        for queue in queues:
            if queue.has_entries and is_hidden(*queue.position(queue.max_offset - 1)):
                name = (queue.topic, queue.number)
                self._ends[name] = queue.first_offset_where(is_hidden)
                self._waiting.append((log_end, name, queue.max_offset))

    def apply_all(self, entries: Sequence[Entry] | EntryColumns) -> None:
        """Hides records that were appended."""
        if isinstance(entries, EntryColumns):  # they are shown all at the same time
            name = (entries.topic, entries.queue_number)
            self.hide(name, entries.queue_offset, entries.end, entries.queue_offset + len(entries))
            entries = ()
        for entry in entries:
            if not entry.sys_flag & IN_NO_QUEUE:
                name = (entry.topic, entry.queue_number)
                self._ends.setdefault(name, entry.queue_offset)
                self._waiting.append((entry.end, name, entry.queue_offset + entry.count))
        if len(self._waiting) > self._coarsen_at:
            self._coarsen()

    # Slaves may be away for long, while messages arrive that do not wait for them. So of many
    # hidden records only some are kept, and those between become visible with the next one kept.
    def _coarsen(self) -> None:
        """Keeps the last record of each queue in each of some pieces of what is hidden."""
        waiting = list(self._waiting)
        size = -(-len(waiting) // _PIECES)
        self._waiting = deque(
            each
            for start in range(0, len(waiting), size)
            for each in {each[1]: each for each in waiting[start : start + size]}.values()
        )
        self._coarsen_at = max(_WAITING_MAX, 2 * len(self._waiting))

    def apply_batch(self, batch: RecordBatch) -> None:
        """Hides records that were copied from a master; they are shown all at the same time."""
        for topic, queues in batch.queues.items():
            for number, flat in queues.items():
                self._ends.setdefault((topic, number), flat[0])
                after = flat[-QUEUE_FIELDS] + batch.count_of(flat[-QUEUE_FIELDS + 1])
                self._waiting.append((batch.end, (topic, number), after))

    def hide(self, name: _Name, first: int, log_end: int, after: int) -> None:
        """Hides what was added to a queue that is no topic's.

        Args:
            first, after: the first new offset, and the one behind the last.
            log_end: log offset behind the records.
        """
        self._ends.setdefault(name, first)
        self._waiting.append((log_end, name, after))

    def advance(self) -> None:
        """Shows the records that have become safe, and wakes the readers that wait for them."""
        self.end = end = min(watermark.value for watermark in self._watermarks)
        waiting, shown = self._waiting, dict[_Name, int]()
        while waiting and waiting[0][0] <= end:
            _, name, after = waiting.popleft()
            shown[name] = after
        for name, after in shown.items():
            self._ends[name] = after
            if (arrival := self._arrivals.get(name)) is not None:
                arrival.rise(after)
        if not waiting:
            self._ends.clear()
            self._coarsen_at = _WAITING_MAX

    def end_of(self, queue: ConsumeQueue) -> int:
        """Where a queue ends for readers."""
        if not self._ends:
            return queue.max_offset
        return self._ends.get((queue.topic, queue.number), queue.max_offset)

    def arrivals(self, queue: ConsumeQueue) -> Watermark:
        """The watermark at the offset where a queue ends for readers."""
        name = (queue.topic, queue.number)
        arrival = self._arrivals.get(name)
        if arrival is None:
            arrival = self._arrivals[name] = Watermark(self.end_of(queue))
        return arrival

    @contextmanager
    def all_shown(self) -> Iterator[None]:
        """Shows what is not confirmed as well, inside a `with` without an await and an append: a
        new master's own parts read all that it has."""
        ends, self._ends = self._ends, {}
        try:
            yield
        finally:
            self._ends = ends

    def forget(self, topic: str) -> None:
        """Drops a topic whose queues were removed; new queues of that name begin at 0."""
        self._waiting = deque(each for each in self._waiting if each[1][0] != topic)
        self._ends = {name: end for name, end in self._ends.items() if name[0] != topic}
        self._arrivals = {name: at for name, at in self._arrivals.items() if name[0] != topic}
