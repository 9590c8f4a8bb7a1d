"""Plans which parts of a broker's log are read, and by which task.

Files that cannot hold wanted records are left out: by the store times of their first records, and
by the consume queues of the topics. If there are fewer files than tasks, files are cut at records.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sprocket.spark.options.loss import report_loss
from sprocket.spark.options.options import StoreOptions
from sprocket.spark.reading.pushdown import EVERYTHING, NOTHING, PushedConditions
from sprocket.spark.store_files.scan import (
    LogFile,
    LogReader,
    first_stored_ms,
    log_files,
    root_of,
)

if TYPE_CHECKING:
    from sprocket.spark.store_files.queues import QueueFiles

#: Tolerance for a clock that was set back, by which later records seem older, ms.
_CLOCK_MS = 600_000
#: After a crash, records of so many last files may be missing in the consume queues.
_UNSURE_FILES = 3
#: The least size of a piece of a file: less is not worth a task.
_PIECE_BYTES_MIN = 16 * 1024 * 1024
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a log file.

    Attributes:
        file: the log file.
        begin, end: positions in the file at which records begin, or its end.
        by_queues: whether its records are found by the consume queues of the topics.
    """

    file: LogFile
    begin: int
    end: int
    by_queues: bool

    def __str__(self) -> str:
        return f"{self.file.path} [{self.begin}, {self.end})"


def plan_store(options: StoreOptions, wanted: PushedConditions = EVERYTHING) -> list[Piece]:
    """The pieces to read, in the order of the log.

    Args:
        options: the options of the read.
        wanted: the conditions that Spark pushed down.

    Raises:
        UsageError: there is no log.
        ReadFailed: files are missing within the log.
    """
    files = log_files(options.store)
    for before, after in pairwise(files):
        if before.end != after.start:
            report_loss(options, before.path, f"the log is missing up to {after.path}")
    queues = _queues(options)
    # After a crash the newest files may hold records that no queue entry leads to yet, so these
    # files are scanned, while the older ones are read through the queues.
    sure = len(files)
    if (root_of(options.store) / "abort").exists():
        sure -= _UNSURE_FILES
    if wanted == NOTHING or wanted.topics == frozenset():
        return []
    since_ms, until_ms = _span(options, wanted)
    pieces = [
        Piece(file, 0, file.size, by_queues=queues is not None and index < sure)
        for index, file in enumerate(files)
        if _is_in_time(files, index, since_ms, until_ms)
    ]
    if queues is not None:
        pieces = [one for one in pieces if not one.by_queues or _has_any(queues, options, one)]
    count = _parts(options, len(pieces))
    size_min = 1 if options.partitions_min else _PIECE_BYTES_MIN
    return [piece for one in pieces for piece in _cut(one, count, size_min)]


def _queues(options: StoreOptions) -> QueueFiles | None:
    """The consume queues; None unless all wanted topics are named and have some."""
    # Tasks load this module for its values; most of them need no queues.
    from sprocket.spark.store_files.queues import QueueFiles

    found = QueueFiles(root_of(options.store))
    is_complete = options.topics and all(found.has(topic) for topic in options.topics)
    return found if is_complete else None


def _span(options: StoreOptions, wanted: PushedConditions) -> tuple[int | None, int | None]:
    """The wanted store times [since, until), ms; None for no bound."""
    since, until = options.starting_time, options.ending_time
    firsts = [since.everywhere.value] if since and since.everywhere else []
    ends = [until.everywhere.value] if until and until.everywhere else []
    firsts += [] if wanted.since_ms is None else [wanted.since_ms]
    ends += [] if wanted.until_ms is None else [wanted.until_ms]
    return max(firsts, default=None), min(ends, default=None)


def _is_in_time(
    files: list[LogFile], index: int, since_ms: int | None, until_ms: int | None
) -> bool:
    """Whether a file may hold records of the wanted times."""
    if until_ms is not None:
        first_ms = first_stored_ms(files[index])
        if first_ms is not None and first_ms - _CLOCK_MS >= until_ms:
            return False
    if since_ms is not None and index + 1 < len(files):
        # All records of the file were stored before the first record of the next file.
        next_ms = first_stored_ms(files[index + 1])
        if next_ms is not None and next_ms + _CLOCK_MS < since_ms:
            return False
    return True


def _has_any(queues: QueueFiles, options: StoreOptions, piece: Piece) -> bool:
    start = piece.file.start
    return queues.has_any(options.topics, start + piece.begin, start + piece.end)


def _parts(options: StoreOptions, files: int) -> int:
    """The number of pieces into which each file should be cut."""
    tasks = options.partitions_min or os.cpu_count() or 1
    return -(-tasks // max(files, 1))


def _cut(piece: Piece, count: int, size_min: int) -> list[Piece]:
    """Cuts a piece into about `count` parts of at least `size_min` bytes."""
    used = _used(piece.file) if piece.file.is_last else piece.end
    count = min(count, max(1, used // size_min))
    if count == 1:
        return [piece]
    edges = [piece.begin]
    with LogReader(piece.file, checks_bodies=False, damaged=lambda *_: None) as reader:
        for part in range(1, count):
            at = used * part // count
            edge = at if piece.by_queues else reader.next_record(at)
            if edge is not None and edges[-1] < edge < piece.end:
                edges.append(edge)
    edges.append(piece.end)
    return [Piece(piece.file, begin, end, piece.by_queues) for begin, end in pairwise(edges)]


def _used(file: LogFile) -> int:
    """About how many bytes of the last file are used; zeros follow them. A binary search."""
    low, high = 0, file.size // _PAGE_BYTES
    with open(file.path, "rb") as opened:
        while low < high:
            middle = (low + high) // 2
            opened.seek(middle * _PAGE_BYTES)
            if any(opened.read(_PAGE_BYTES)):
                low = middle + 1
            else:
                high = middle
    return min(low * _PAGE_BYTES, file.size)
