"""What the tests of the store scan share: stores made of files, golden ones among them."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sprocket.message.record import BLANK_MAGIC
from sprocket.spark.options.options import StoreOptions, read_options
from sprocket.spark.records.schema import COLUMNS, arrow_schema
from sprocket.spark.store_files.read import StoreReader
from sprocket.store.views.batch_unit import UNIT
from sprocket.store.views.consume_queue import ENTRY
from tests.spark.support import record

GOLDEN = Path(__file__).parents[1] / "golden" / "stores"
ALL = arrow_schema([(column.name, column.type, True) for column in COLUMNS])


def golden_store(name: str, folder: Path) -> Path:
    """A store that Java's broker left, unpacked."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(GOLDEN / f"{name}.tar.gz") as archive:
        members = [m for m in archive if "timerwheel" not in m.name]
        archive.extractall(folder, members, filter="data")
    return folder / name


def manifest(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """What Java's client could read of it, by topic and queue number."""
    with gzip.open(GOLDEN / f"{name}.json.gz") as file:
        found: dict[str, dict[str, dict[str, Any]]] = json.load(file)
    return found


class Store:
    """A store that is written by hand: log files of a fixed size, and consume queues."""

    def __init__(self, root: Path, *, file_bytes: int = 4096) -> None:
        self.root = root
        self.file_bytes = file_bytes
        self.log = bytearray(file_bytes)
        self.end = 0
        self.offsets: dict[tuple[str, int], int] = {}
        self.places: list[tuple[int, int]] = []
        #: Entries, by queue; and units of batch queues.
        self.entries: dict[tuple[str, int], list[bytes]] = {}
        self.units: dict[tuple[str, int], list[bytes]] = {}

    def add(
        self, topic: str, number: int = 0, *, tag_code: int = 0, messages: int = 0, **more: Any
    ) -> int:
        """Adds a record; its log offset. With `messages` its queue is a batch queue."""
        offset = self.offsets.get((topic, number), 0)
        made = bytearray(record(offset, topic=topic, queue_number=number, **more))
        left = self.file_bytes - self.end % self.file_bytes
        if len(made) + 8 > left:
            blank = left.to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big", signed=True)
            self.log[self.end : self.end + 8] = blank
            self.end += left
            self.log += bytes(self.file_bytes)
        made[28:36] = self.end.to_bytes(8, "big")
        at = self.end
        self.log[at : at + len(made)] = made
        self.end += len(made)
        self.offsets[topic, number] = offset + max(messages, 1)
        self.places.append((at, len(made)))
        if messages:
            unit = UNIT.pack(at, len(made), tag_code, 0, offset, messages, -1, 0)
            self.units.setdefault((topic, number), []).append(unit)
        else:
            entry = ENTRY.pack(at, len(made), tag_code)
            self.entries.setdefault((topic, number), []).append(entry)
        return at

    def save(self, *, spare_files: int = 0, has_queues: bool = True) -> Path:
        """Writes it all anew."""
        shutil.rmtree(self.root, ignore_errors=True)
        log = self.root / "commitlog"
        log.mkdir(parents=True)
        data = bytes(self.log) + bytes(spare_files * self.file_bytes)
        for start in range(0, len(data), self.file_bytes):
            (log / f"{start:020}").write_bytes(data[start : start + self.file_bytes])
        kinds = {"consumequeue": self.entries, "batchconsumequeue": self.units}
        for kind, queues in kinds.items() if has_queues else ():
            for (topic, number), entries in queues.items():
                folder = self.root / kind / topic / str(number)
                folder.mkdir(parents=True)
                (folder / f"{0:020}").write_bytes(b"".join(entries) + bytes(460))
        return self.root


def rows(root: Path, **given: str) -> list[dict[str, Any]]:
    """All rows of a scan, all columns."""
    reader = StoreReader(read_options({"store": str(root), **given}, StoreOptions), ALL)
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def log_offsets(found: Iterable[dict[str, Any]]) -> list[int]:
    return [row["log_offset"] for row in found]
