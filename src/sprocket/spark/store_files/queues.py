"""Reads a broker's consume queues from their files, to find the records of queues in the log.

Other records of the log need not be read then. Nothing is opened for writing.

Source: ConsumeQueue of RocketMQ 4.9 and 5.x, BatchConsumeQueue of 5.x; the entries are described in
`sprocket.store.views.consume_queue`, the units of batch queues in `…views.batch_unit`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sprocket.spark.records.layout import Places
from sprocket.store.views.batch_unit import UNIT_BYTES
from sprocket.store.views.consume_queue import BLANK_SIZE, ENTRY_BYTES

_ENTRY = np.dtype([("log_offset", ">i8"), ("size", ">i4"), ("tag_code", ">i8")])
assert _ENTRY.itemsize == ENTRY_BYTES
#: A unit begins as an entry does.
_UNIT = np.dtype([*_ENTRY.descr, ("rest", f"V{UNIT_BYTES - ENTRY_BYTES}")])
_FOLDER = "consumequeue"
_BATCH_FOLDER = "batchconsumequeue"


class QueueRecords(NamedTuple):
    """Log offsets and sizes of the records of some queues, in the order of the log."""

    log_offsets: Places
    sizes: Places


class _QueueFolder(NamedTuple):
    """The folder of a queue, and the form of its entries."""

    folder: Path
    kind: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """The consume queues of a store, those of both kinds.

    Attributes:
        store: the folder that has `consumequeue` and `batchconsumequeue`.
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
            tag_codes: hashes of the wanted tags; None for all. A record that holds a batch is
                always there: its messages have tags of their own.
        """
        found: list[NDArray[Any]] = []
        for queue in (queue for topic in topics for queue in self._queues(topic)):
            for entries in _between(queue, log_start, log_end):
                if tag_codes is not None and queue.kind is _ENTRY:
                    entries = entries[np.isin(entries["tag_code"], list(tag_codes))]
                found.append(entries)
        if not found:
            none = np.empty(0, np.int64)
            return QueueRecords(none, none)
        log_offsets = np.concatenate([each["log_offset"] for each in found]).astype(np.int64)
        sizes = np.concatenate([each["size"] for each in found]).astype(np.int64)
        # A topic whose kind was changed by a crash may have queues of both for a while.
        log_offsets, first = np.unique(log_offsets, return_index=True)
        return QueueRecords(log_offsets, sizes[first])

    def _queues(self, topic: str) -> Iterator[_QueueFolder]:
        for name, kind in ((_FOLDER, _ENTRY), (_BATCH_FOLDER, _UNIT)):
            folder = self.store / name / topic
            if folder.is_dir():
                for one in sorted(folder.iterdir()):
                    if one.name.isdecimal():
                        yield _QueueFolder(one, kind)


def _between(queue: _QueueFolder, log_start: int, log_end: int) -> Iterator[NDArray[Any]]:
    """The entries of one queue whose log offsets are in [log_start, log_end)."""
    files = sorted(one for one in queue.folder.iterdir() if one.name.isdecimal())
    first_logs = [_first_log_offset(one, queue.kind) for one in files]
    for index, file in enumerate(files):
        following = [log for log in first_logs[index + 1 :] if log is not None]
        first = first_logs[index]
        if first is None or first >= log_end or (following and following[0] <= log_start):
            continue
        entries = _entries(file, queue.kind)
        logs = entries["log_offset"]
        yield entries[(logs >= log_start) & (logs < log_end)]


def _entries(file: Path, kind: np.dtype[Any], count: int = -1) -> NDArray[Any]:
    """The entries of a file that refer to records."""
    entries: NDArray[Any] = np.fromfile(file, kind, count)
    is_used: NDArray[np.bool_] = (entries["size"] > 0) & (entries["size"] != BLANK_SIZE)
    used: NDArray[Any] = entries[is_used]
    return used


def _first_log_offset(file: Path, kind: np.dtype[Any]) -> int | None:
    """The log offset of the first entry of a file that refers to a record; None without one."""
    for count in (1, -1):
        entries = _entries(file, kind, count)
        if len(entries):
            return int(entries["log_offset"][0])
    return None
