"""Where every queue ended when this was last saved: regularly, and when the store is closed.

It shows a start that files of a queue are missing. Without it the queue would begin at offset 0
again, and its next message would get the offset of an older one. The state file
`config/queueEnds.json`:

    {"logEnd":log offset,"queueEnds":{topic:{queue number:offset after its last message}},
     "indexFiles":{name:[entries,log offset of the last record]}}
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.state.snapshot import Snapshot
from sprocket.store.views.consume_queue import ConsumeQueue
from sprocket.store.views.key_index import KeyIndex
from sprocket.store.views.lite_queues import SHARED

logger = logging.getLogger(__name__)


class Noted(NamedTuple):
    """Where all queues ended at one moment.

    Attributes:
        log_end: where the log ended then.
        ends: offset after the last message, by topic and number.
        index_files: of each file of the key index: its number of entries, and the log offset of its
            last record.
    """

    log_end: int
    ends: Mapping[str, Mapping[int, int]]
    index_files: Mapping[str, tuple[int, int]]


class QueueEnds:
    """The file, and its content at the start.

    Args:
        queues: all queues, by topic and number.
        index: the key index; None if it is not used.

    Attributes:
        log_end: where the log ended when the file was written.
        index_files: what the key index had then, as `KeyIndex.noted` gives it.
    """

    __slots__ = ("_disk", "_ends", "_index", "_queues", "_snapshot", "index_files", "log_end")

    def __init__(
        self,
        disk: Disk,
        root: str,
        queues: Mapping[tuple[str, int], ConsumeQueue],
        index: KeyIndex | None = None,
    ) -> None:
        self._disk = disk
        self._index = index
        self.index_files: dict[str, tuple[int, int]] = {}
        self._queues = queues
        self._snapshot = Snapshot(disk, f"{root}/config/queueEnds.json")
        self._ends: dict[tuple[str, int], int] = {}
        self.log_end = 0

    def load(self) -> None:
        """Reads the file. A broken file is ignored, and replaced by the next save."""
        try:
            state = self._snapshot.load()
            for topic, queues in state.get("queueEnds", {}).items():
                for number, end in queues.items():
                    self._ends[str(topic), int(number)] = int(end)
            self.log_end = int(state.get("logEnd", 0))
            for name, (entries, end) in state.get("indexFiles", {}).items():
                self.index_files[str(name)] = (int(entries), int(end))
        except (StoreError, AttributeError, TypeError, ValueError) as error:
            logger.error("%s is not used: %s", self._snapshot.path, error)
            self._snapshot = Snapshot(self._disk, self._snapshot.path, begins_anew=True)
            self._ends, self.index_files = {}, {}

    def shorter(self, deleted: DeletedTopics, *, log_end: int) -> str | None:
        """Describes a queue that lacks messages which it had; None if there is no such queue.

        Args:
            log_end: where the log ends now; if the log has lost messages, queues may lack them too.
        """
        if log_end < self.log_end:
            return None
        for name, end, queue in self._known(deleted):
            if deleted and queue is not None and queue.topic == SHARED:
                continue  # a replay leaves out what deleted topics had there
            now = 0 if queue is None else queue.max_offset
            if now < end:
                return f"{name} ends at {now} and had messages up to {end}"
        return None

    def missing(self, deleted: DeletedTopics) -> str | None:
        """Describes a queue that lacks files which it had; None if there is no such queue."""
        for name, end, queue in self._known(deleted):
            if end and (queue is None or queue.lacks_files(end)):
                return f"{name} lacks files, and had messages up to {end}"
        return None

    def expired(self, deleted: DeletedTopics) -> Iterator[tuple[str, int, int]]:
        """Queues that had messages and have none now: topic, number, where they ended."""
        for (topic, number), end in self._ends.items():
            queue = self._queues.get((topic, number))
            if end and not deleted.end_of(topic) and (queue is None or not queue.has_entries):
                yield topic, number, end

    def _known(self, deleted: DeletedTopics) -> Iterator[tuple[str, int, ConsumeQueue | None]]:
        for (topic, number), end in self._ends.items():
            if not deleted.end_of(topic):
                yield f"queue {number} of {topic}", end, self._queues.get((topic, number))

    def note(self, log_end: int) -> Noted:
        """Where all queues end now; `save` it once the log is on the disk up to `log_end`.

        Args:
            log_end: where the log ends now.
        """
        ends: dict[str, dict[int, int]] = {}
        for (topic, number), queue in sorted(self._queues.items()):
            if queue.has_files:
                ends.setdefault(topic, {})[number] = queue.max_offset
        return Noted(log_end, ends, {} if self._index is None else self._index.noted)

    def save_for_cut(self, log_end: int) -> None:
        """Writes where all queues end in a log that will be cut, before it is.

        Otherwise a crash in between would leave ends of messages that are gone, and a queue that
        had no others would continue there.

        Raises:
            OSError: the disk refuses it; the old file remains.
        """
        ends: dict[str, dict[int, int]] = {}
        for (topic, number), queue in sorted(self._queues.items()):
            if (
                queue.has_files
            ):  # if all that is left of it is cut, it continues behind what expired
                expired = min(queue.first_stored, self._ends.get((topic, number), 0))
                end = max(queue.end_before(log_end), expired)
                ends.setdefault(topic, {})[number] = end
        self._snapshot.save({"logEnd": log_end, "queueEnds": ends})
        self._ends = {
            (topic, number): end for topic, rows in ends.items() for number, end in rows.items()
        }
        self.log_end, self.index_files = log_end, {}

    def save(self, noted: Noted) -> None:
        """Writes the file.

        If the disk refuses, the old file remains. It is still true, because queues only grow.
        """
        if not noted.ends and not self._ends:
            return
        try:
            state = {"logEnd": noted.log_end, "queueEnds": noted.ends}
            if noted.index_files:
                state["indexFiles"] = {name: list(each) for name, each in noted.index_files.items()}
            self._snapshot.save(state)
        except OSError as error:
            logger.warning("%s cannot be saved: %s", self._snapshot.path, error)
