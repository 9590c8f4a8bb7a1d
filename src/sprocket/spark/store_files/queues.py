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

from sprocket.spark.records.heads import Places
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
        found: list[QueueRecords] = []
        for queue in (queue for topic in topics for queue in self._queues(topic)):
            codes = tag_codes if queue.kind is _ENTRY else None
            found += _between(queue, log_start, log_end, codes)
        if not found:
            none = np.empty(0, np.int64)
            return QueueRecords(none, none)
        return _in_order(
            np.concatenate([one.log_offsets for one in found]),
            np.concatenate([one.sizes for one in found]),
        )

    def has_any(self, topics: Collection[str], log_start: int, log_end: int) -> bool:
        """Whether the topics have records in [log_start, log_end) of the log."""
        return any(
            len(one.sizes)
            for topic in topics
            for queue in self._queues(topic)
            for one in _between(queue, log_start, log_end, None)
        )

    def _queues(self, topic: str) -> Iterator[_QueueFolder]:
        for name, kind in ((_FOLDER, _ENTRY), (_BATCH_FOLDER, _UNIT)):
            folder = self.store / name / topic
            if folder.is_dir():
                for one in sorted(folder.iterdir()):
                    if one.name.isdecimal():
                        yield _QueueFolder(one, kind)


def _in_order(log_offsets: Places, sizes: Places) -> QueueRecords:
    """The same records in the order of the log, each once."""
    # Each queue is in order already, so all of them are a few ascending runs: a stable sort merges.
    order = np.argsort(log_offsets, kind="stable")
    log_offsets, sizes = log_offsets[order], sizes[order]
    # A topic whose kind was changed by a crash may have queues of both for a while.
    is_first = np.append(True, log_offsets[1:] != log_offsets[:-1])
    if not is_first.all():
        log_offsets, sizes = log_offsets[is_first], sizes[is_first]
    return QueueRecords(log_offsets, sizes)


def _between(
    queue: _QueueFolder, log_start: int, log_end: int, tag_codes: Collection[int] | None
) -> Iterator[QueueRecords]:
    """The records of one queue whose log offsets are in [log_start, log_end)."""
    files = sorted(one for one in queue.folder.iterdir() if one.name.isdecimal())
    first_logs = [_first_log_offset(one, queue.kind) for one in files]
    for index, file in enumerate(files):
        following = [log for log in first_logs[index + 1 :] if log is not None]
        first = first_logs[index]
        if first is None or first >= log_end or (following and following[0] <= log_start):
            continue
        entries: NDArray[Any] = np.fromfile(file, queue.kind)
        logs, sizes = entries["log_offset"].astype(np.int64), entries["size"].astype(np.int64)
        wanted = _is_used(sizes) & (logs >= log_start) & (logs < log_end)
        if tag_codes is not None:
            wanted &= np.isin(entries["tag_code"], list(tag_codes))
        yield QueueRecords(logs[wanted], sizes[wanted])


def _is_used(sizes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries refer to records, by their sizes."""
    is_used: NDArray[np.bool_] = (sizes > 0) & (sizes != BLANK_SIZE)
    return is_used


def _first_log_offset(file: Path, kind: np.dtype[Any]) -> int | None:
    """The log offset of the first entry of a file that refers to a record; None without one."""
    for count in (1, -1):
        entries: NDArray[Any] = np.fromfile(file, kind, count)
        used = np.flatnonzero(_is_used(entries["size"]))
        if len(used):
            return int(entries["log_offset"][used[0]])
    return None
