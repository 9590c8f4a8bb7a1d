"""Reads and repairs the offsets in the checkpoint of a query in Spark.

Of each micro-batch the folder `offsets` has a file with its number: a line with the version, a line
of settings, and a line for each source with the offsets at which the batch ends, `-` for none. The
folder `commits` has a file with that number once the batch is done. The next batch begins where the
last one ends. Beside each file Hadoop keeps its checksum (`.7.crc`), and reads a file without one
unchecked.

Source: Spark 4.3, `OffsetSeqLog`, `CommitLog`, `ChecksumFileSystem`; the versions before it write
the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sprocket.base.errors import UsageError
from sprocket.base.ports import Disk
from sprocket.base.suggestions import shown
from sprocket.message.queue import QueueId
from sprocket.runtime.disk import SystemDisk
from sprocket.spark.options.checkpoint import StreamOffsets, offsets_in, shape_checkpoint
from sprocket.spark.options.positions import EARLIEST, Position, PositionKind, QueuePositions

VERSION = "v1"
#: A million queues take 60 MiB.
_BYTES_MAX = 256 << 20
#: The lines before those of the sources: version and settings.
_HEAD = 2


@dataclass(frozen=True)
class LastBatch:
    """The last micro-batch in a checkpoint.

    Attributes:
        path: the file of its offsets.
        batch: its number, from 0.
        is_done: whether Spark has written all of it; if not, the query begins with it again.
        sources: where it ends in each RocketMQ source, by the number of the source in the query.
        lines: what the file has, a source in each line after the first two.
    """

    path: str
    batch: int
    is_done: bool
    sources: Mapping[int, StreamOffsets]
    lines: tuple[str, ...]


def read_last(disk: Disk, folder: str) -> LastBatch:
    """Reads the checkpoint in a folder of this machine.

    Raises:
        UsageError: there is none, no query has begun, or it is in a form that is not known.
    """
    root = _local(folder)
    batches = _numbers(disk, f"{root}/offsets")
    if not batches:
        raise UsageError(
            f"{folder} is no checkpoint of a query, or no micro-batch has begun: it has no file in "
            "the folder offsets. Name the folder of the option checkpointLocation"
        )
    return _read(disk, root, max(batches))


def offsets_of_query(option: str, folder: str, queues: Collection[QueueId]) -> QueuePositions:
    """Where a query stands: behind the last micro-batch that its sink has, as an option's value.

    Args:
        option: the option's name, for errors.
        folder: its checkpoint, on this machine.
        queues: those that are read; the others of the query are left out.

    Raises:
        UsageError: no micro-batch is done, or the query has not one RocketMQ source.
    """
    disk, root = SystemDisk(), _local(folder)
    done = _numbers(disk, f"{root}/offsets") & _numbers(disk, f"{root}/commits")
    if not done:
        raise UsageError(
            f"option {option}: {folder} is no checkpoint of a query, or none of its micro-batches "
            "is done"
        )
    sources = list(_read(disk, root, max(done)).sources.values())
    if len(sources) != 1:
        raise UsageError(
            f"option {option}: the query of {folder} has {len(sources)} RocketMQ sources: give what"
            " `sprocket spark checkpoint show FOLDER --source NUMBER --offsets` prints"
        )
    (source,) = sources
    offsets = {
        queue: Position(PositionKind.OFFSET, offset)
        for queue, offset in source.next.items()
        if queue in queues
    }
    return QueuePositions(option, EARLIEST, queues=offsets, witnesses=source.witnesses)


def _read(disk: Disk, root: str, batch: int) -> LastBatch:
    path = f"{root}/offsets/{batch}"
    if (disk.size(path) or 0) > _BYTES_MAX:
        raise UsageError(f"{path} has more than {_BYTES_MAX >> 20} MiB: it is no file of offsets")
    try:
        lines = tuple((disk.read(path) or b"").decode().rstrip("\n").split("\n"))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text: it is damaged, or no file of offsets") from None
    if lines[0] != VERSION:
        found = shown(lines[0][:20])
        raise UsageError(
            f"{path} has the version {found}, and only {VERSION} is known: the query was started "
            "with another spark.sql.streaming.offsetLog.formatVersion"
        )
    sources = {
        number: offsets
        for number, line in enumerate(lines[_HEAD:])
        if (offsets := offsets_in(line)) is not None
    }
    return LastBatch(path, batch, batch in _numbers(disk, f"{root}/commits"), sources, lines)


def set_offsets(
    disk: Disk, checkpoint: LastBatch, source: int, offsets: Mapping[QueueId, int]
) -> None:
    """Has the query's next micro-batch begin at these offsets; other queues stay where they are.

    The query must not run. The file as it was is kept beside it (`.bak`). What recognises the
    queues is forgotten, since they may have been made anew; the next batch finds it again.

    Raises:
        UsageError: there is no such source, or its last batch is not done.
    """
    if source not in checkpoint.sources:
        raise UsageError(f"source {source} of this query is no RocketMQ source")
    if not checkpoint.is_done:
        raise UsageError(
            f"micro-batch {checkpoint.batch} is not done, and the sink may have some of its rows: "
            "start the query once more so that it ends the batch, with failOnDataLoss=false if its "
            "messages are gone"
        )
    old = checkpoint.sources[source]
    new = StreamOffsets(
        {**old.next, **offsets},
        {queue: one for queue, one in old.witnesses.items() if queue not in offsets},
        {queue: begin for queue, begin in old.anew.items() if queue not in offsets},
    )
    lines = list(checkpoint.lines)
    lines[_HEAD + source] = json.dumps(shape_checkpoint(new))
    root, name = os.path.split(checkpoint.path)
    disk.remove(f"{root}/.{name}.crc")  # first: a checksum of other bytes would stop the query
    disk.replace(checkpoint.path, "\n".join(lines).encode(), backup=True)


def _numbers(disk: Disk, folder: str) -> set[int]:
    """The micro-batches of which a folder has a file."""
    return {int(name) for name in disk.names(folder) if name.isascii() and name.isdigit()}


def _local(folder: str) -> str:
    """The path of a folder, which may be given as a URL."""
    try:
        parts = urlsplit(folder)
    except ValueError:
        raise UsageError(f"{shown(folder)} is neither a folder nor a URL") from None
    if parts.scheme not in ("", "file") or parts.netloc:
        raise UsageError(
            f"{folder} is not on this machine: copy the folders offsets and commits here, and what "
            "was changed back"
        )
    path = unquote(parts.path) if parts.scheme else folder
    if "\0" in path:
        raise UsageError(f"{shown(path)} is no path of a folder")
    return path.rstrip("/") or "/"
