"""Which topics keep each batch as one record, so that their queues have units instead of entries.

A topic is made so, and never changes; the broker's `config/topics.json` says it, also before the
broker has read that file. What is not in the file is told while the store is open.
"""

from __future__ import annotations

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.message.topic_attributes import has_batch_queues
from sprocket.store.state.snapshot import Snapshot


class QueueKinds:
    """The topics with batch queues."""

    __slots__ = ("_batch_topics", "_disk", "_others", "_root")

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._batch_topics: set[str] = set()
        #: Topics of the file that have other queues.
        self._others: set[str] = set()

    def load(self) -> None:
        """Reads them from the broker's file. A broken one is left to the broker to report."""
        try:
            table = Snapshot(self._disk, f"{self._root}/config/topics.json").load()
        except (StoreError, OSError):
            return
        topics = table.get("topicConfigTable")
        for name, topic in topics.items() if isinstance(topics, dict) else ():
            attributes = topic.get("attributes") if isinstance(topic, dict) else None
            is_batch = isinstance(attributes, dict) and has_batch_queues(attributes)
            (self._batch_topics if is_batch else self._others).add(str(name))

    def is_batch(self, topic: str) -> bool:
        """Whether the queues of a topic are batch queues."""
        return topic in self._batch_topics

    def is_other(self, topic: str) -> bool:
        """Whether the file said that a topic has other queues."""
        return topic in self._others

    def set(self, topic: str, *, is_batch: bool) -> None:
        """Notes what new queues of a topic are."""
        self._others.discard(topic)
        if is_batch:
            self._batch_topics.add(topic)
        else:
            self._batch_topics.discard(topic)
