"""Reads a broker's consume queues from their files, to find the records of queues in the log.

Other records of the log need not be read then. Nothing is opened for writing.

Source: ConsumeQueue of RocketMQ 4.9 and 5.x; the entries are described in
`sprocket.store.views.consume_queue`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sprocket.spark.records.layout import Places
from sprocket.store.views.consume_queue import BLANK_SIZE, ENTRY_BYTES

_ENTRY = np.dtype([("log_offset", ">i8"), ("size", ">i4"), ("tag_code", ">i8")])
assert _ENTRY.itemsize == ENTRY_BYTES
_FOLDER = "consumequeue"


class QueueRecords(NamedTuple):
    """Log offsets and sizes of the records of some queues, in the order of the log."""

    log_offsets: Places
    sizes: Places


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """The consume queues of a store.

    Attributes:
        store: the folder that has `consumequeue`.
    """

    store: Path

    def has(self, topic: str) -> bool:
        """Whether the topic has queues."""
        return any(self._queues(topic))

    def records(
        self,
        topics: Collection[str],
        log_start: int,
        log_end: int,
        *,
        tag_codes: Collection[int] | None = None,
    ) -> QueueRecords:
        """The records of the topics in [log_start, log_end) of the log.

        Args:
            tag_codes: hashes of the wanted tags; None for all.
        """
        some = [
            entries
            for topic in topics
            for queue in self._queues(topic)
            for entries in _between(queue, log_start, log_end)
        ]
        if not some:
            none = np.empty(0, np.int64)
            return QueueRecords(none, none)
        entries = np.concatenate(some)
        if tag_codes is not None:
            entries = entries[np.isin(entries["tag_code"], list(tag_codes))]
        entries = entries[np.argsort(entries["log_offset"], kind="stable")]
        return QueueRecords(
            entries["log_offset"].astype(np.int64), entries["size"].astype(np.int64)
        )

    def _queues(self, topic: str) -> Iterator[Path]:
        folder = self.store / _FOLDER / topic
        if folder.is_dir():
            yield from (one for one in sorted(folder.iterdir()) if one.name.isdecimal())


def _between(queue: Path, log_start: int, log_end: int) -> Iterator[NDArray[Any]]:
    """The entries of one queue whose log offsets are in [log_start, log_end)."""
    files = sorted(one for one in queue.iterdir() if one.name.isdecimal())
    first_logs = [_first_log_offset(one) for one in files]
    for index, file in enumerate(files):
        following = [log for log in first_logs[index + 1 :] if log is not None]
        first = first_logs[index]
        if first is None or first >= log_end or (following and following[0] <= log_start):
            continue
        entries = _entries(file)
        logs = entries["log_offset"]
        yield entries[(logs >= log_start) & (logs < log_end)]


def _entries(file: Path, count: int = -1) -> NDArray[Any]:
    """The entries of a file that refer to records."""
    entries: NDArray[Any] = np.fromfile(file, _ENTRY, count)
    is_used: NDArray[np.bool_] = (entries["size"] > 0) & (entries["size"] != BLANK_SIZE)
    used: NDArray[Any] = entries[is_used]
    return used


def _first_log_offset(file: Path) -> int | None:
    """The log offset of the first entry of a file that refers to a record; None without one."""
    for count in (1, -1):
        entries = _entries(file, count)
        if len(entries):
            return int(entries["log_offset"][0])
    return None
