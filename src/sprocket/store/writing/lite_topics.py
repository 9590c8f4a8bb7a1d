"""Lite topics: appends to them, and reads from them."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange
from sprocket.base.watermark import Watermark
from sprocket.message.lite import LiteName
from sprocket.message.record import Draft
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.lite_queues import LiteQueues
from sprocket.store.writing.appender import Appended, Appender


class LiteRead(NamedTuple):
    """What a read of a lite topic found.

    Attributes:
        messages: offset in the lite topic, and record, of each message.
        next_offset: where to read next.
        max_offset: where the lite topic ends for readers.
    """

    messages: list[tuple[int, memoryview]]
    next_offset: int
    max_offset: int


class LiteTopics:
    """The lite topics of one store. A lite topic begins with its first message."""

    def __init__(
        self,
        log: CommitLog,
        queues: LiteQueues,
        appender: Appender,
        confirmed: ConfirmedOffsets | None,
    ) -> None:
        self._log = log
        self._queues = queues
        self._appender = appender
        self._confirmed = confirmed

    def append(self, draft: Draft, name: LiteName) -> Appended:
        """Writes a message to the log, to its queue of the parent topic and to a lite topic.

        Args:
            draft: the message; the properties that say where it is in the lite topic are added.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: as `Store.append`.
        """
        return self._appender.append_lite(draft, name, self._queues)

    def __len__(self) -> int:
        return len(self._queues)

    def count(self, parent: str) -> int:
        """How many lite topics a parent topic has."""
        return len(self._queues.under(parent))

    def parents(self) -> list[str]:
        """The topics that have lite topics."""
        return self._queues.parents()

    def names(self, parent: str) -> list[LiteName]:
        """The lite topics of a parent topic."""
        return [queue.name for queue in self._queues.under(parent)]

    def has(self, name: LiteName) -> bool:
        """Whether a lite topic has messages, or had some since it was made."""
        return self._queues.find(name) is not None

    @property
    def _end(self) -> int:
        shared = self._queues.shared
        return shared.max_offset if self._confirmed is None else self._confirmed.end_of(shared)

    @property
    def arrivals(self) -> Watermark:
        """The watermark at the number of messages in all lite topics that readers see."""
        shared = self._queues.shared
        if self._confirmed is not None:
            return self._confirmed.arrivals(shared)
        if shared.arrival is None:
            shared.arrival = Watermark(shared.max_offset)
        return shared.arrival

    def arrived(self, start: int, end: int) -> list[LiteName]:
        """The lite topics of messages by their numbers, see `arrivals`; each once."""
        start = max(start, self._queues.shared.min_offset)
        found = (self._queues.name_at(index) for index in range(start, end))
        return list(dict.fromkeys(name for name in found if name is not None))

    def min_offset(self, name: LiteName) -> int:
        """The offset of the first message that the log has; 0 for one without messages."""
        queue = self._queues.find(name)
        return 0 if queue is None else self._queues.low(queue)

    def max_offset(self, name: LiteName) -> int:
        """The offset behind the last message that readers see; 0 for one without messages."""
        queue = self._queues.find(name)
        return 0 if queue is None else self._queues.high(queue, self._end)

    def last_ms(self, name: LiteName) -> int | None:
        """When its last message was stored, ms; None if that is not known without its record."""
        queue = self._queues.find(name)
        known = None if queue is None else queue.last_known
        return None if known is None or queue is None or known[0] != queue.last else known[1]

    def last_place(self, name: LiteName) -> int | None:
        """The log offset of its last message; None if the log has none."""
        queue = self._queues.find(name)
        return None if queue is None else self._queues.last_log_offset(queue)

    def read_last_ms(self, name: LiteName) -> int:
        """The same as `last_ms` from the record, and remembers it; -1 if the log has none."""
        queue = self._queues.find(name)
        at = None if queue is None else self._queues.last_log_offset(queue)
        if queue is None or at is None:
            return -1
        stored_ms = self._log.stored_ms_at(at)
        queue.last_known = (queue.last, stored_ms)
        return stored_ms

    def time_of(self, name: LiteName, offset: int) -> int:
        """When a message was stored, ms; -1 if it is not there."""
        queue = self._queues.find(name)
        found = [] if queue is None else self._queues.entries(queue, offset, 1, self._end)
        if not found or found[0].log_offset < self._log.start:
            return -1
        return self._log.stored_ms_at(found[0].log_offset)

    def read(self, name: LiteName, offset: int, *, count_max: int, bytes_max: int) -> LiteRead:
        """Messages of a lite topic from an offset on, or from the first one behind it.

        Args:
            bytes_max: at most this many bytes together; the first message may be longer.
        """
        queue = self._queues.find(name)
        if queue is None:
            return LiteRead([], 0, 0)
        high = self._queues.high(queue, self._end)
        offset = max(offset, self._queues.low(queue))
        messages: list[tuple[int, memoryview]] = []
        size = 0
        for at, log_offset, record_bytes in self._queues.entries(
            queue, offset, count_max, self._end
        ):
            if messages and size + record_bytes > bytes_max:
                break
            try:
                record = self._log.slice(log_offset, log_offset + record_bytes)
            except OffsetOutOfRange:  # its file was removed just now
                offset = at + 1
                continue
            messages.append((at, record))
            size += record_bytes
            offset = at + 1
        return LiteRead(messages, offset, high)

    def places(self, name: LiteName, offset: int, count: int) -> list[int]:
        """The log offsets of messages from an offset on."""
        queue = self._queues.find(name)
        if queue is None:
            return []
        offset = max(offset, self._queues.low(queue))
        return [each.log_offset for each in self._queues.entries(queue, offset, count, self._end)]

    def remove(self, name: LiteName) -> None:
        """Forgets a lite topic that nobody needs: its messages stay in the parent topic. After a
        restart it is there again, until it is removed again."""
        self._queues.remove(name)

    def forget(self, parent: str) -> None:
        """Forgets the lite topics of a parent topic that is deleted."""
        self._queues.forget(parent)
