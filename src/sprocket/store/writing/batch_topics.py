"""Topics that keep each batch as one record: which they are, and appends of batches to them."""

from __future__ import annotations

from sprocket.message.record import Draft
from sprocket.store.views.queues import ConsumeQueues
from sprocket.store.writing.appender import Appended, Appender


class BatchTopics:
    """The topics of one store that have batch queues."""

    def __init__(self, queues: ConsumeQueues, appender: Appender) -> None:
        self._queues = queues
        self._appender = appender

    def set_kind(self, topic: str, *, is_batch: bool) -> None:
        """Notes whether the queues of a topic keep batches as one record.

        Raises:
            DiskFull, StoreError: the disk refuses the files of queues that change.
        """
        self._queues.set_kind(topic, is_batch=is_batch)

    def has(self, topic: str) -> bool:
        """Whether the queues of a topic keep batches as one record."""
        return self._queues.is_batch(topic)

    def append(self, draft: Draft, count: int) -> Appended:
        """Writes a batch as one record, with the number and the offset of its messages.

        Args:
            draft: the batch; its body holds the messages, see `sprocket.message.batch`.
            count: how many there are, 1 to 32,767.

        Raises:
            IllegalDraft: as `Store.append`; or the topic has no batch queues, or there are more.
            DiskFull, StoreError, ClosedError: as `Store.append`.
        """
        return self._appender.append_inner(draft, count)
