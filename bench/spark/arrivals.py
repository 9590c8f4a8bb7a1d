"""A sink that notes how long each message was on its way.

The first eight bytes of a message's body say when it was sent (ns, big end first). The sink is the
same for both connectors: a Python data source that takes Arrow batches, and costs as little as
ours does.
"""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from sprocket.spark.worker import task_counter

STAMP = struct.Struct(">q")


class Arrivals(DataSource):
    """`format("arrivals").option("folder", …)`: one file of waits (ms, native doubles) a task."""

    @classmethod
    def name(cls) -> str:
        return "arrivals"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        task_counter.task_begins()
        return _Writer(Path(self.options["folder"]))


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task_counter.task_begins()
        waits: list[float] = []
        for batch in iterator:
            bodies = batch.column(0).to_pylist()
            now = time.time_ns()
            waits += [(now - STAMP.unpack_from(body)[0]) / 1e6 for body in bodies]
        if waits:
            path = self._folder / uuid.uuid4().hex
            path.with_suffix(".new").write_bytes(struct.pack(f"{len(waits)}d", *waits))
            path.with_suffix(".new").rename(path.with_suffix(".waits"))
        return WriterCommitMessage()


def take(folder: Path) -> list[float]:
    """The waits so far, ms; their files are removed."""
    waits: list[float] = []
    for path in folder.glob("*.waits"):
        data = path.read_bytes()
        waits += struct.unpack(f"{len(data) // 8}d", data)
        path.unlink()
    return waits
