"""The streaming read that Spark calls. Needs PySpark 4.2, which passes the start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from sprocket.spark.options.checkpoint import read_checkpoint, shape_checkpoint, shape_offsets
from sprocket.spark.options.options import StreamOptions
from sprocket.spark.reading.read import SharePartition, ShareReader

if TYPE_CHECKING:
    import pyarrow as pa

    from sprocket.spark.reading.stream import StreamPlan

Shape = dict[str, Any]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. Offsets are exchanged with Spark as JSON by topic, broker, queue number."""

    def __init__(self, options: StreamOptions, schema: pa.Schema) -> None:
        self._options = options
        self._reader = ShareReader(options, schema)
        #: Made in the process in which Spark asks for offsets; the copies in tasks never have one.
        self._made: StreamPlan | None = None

    @property
    def _plan(self) -> StreamPlan:
        if self._made is None:
            from sprocket.spark.reading.stream import StreamPlan

            self._made = StreamPlan(self._options)
        return self._made

    def initialOffset(self) -> Shape:
        """The first offsets of a new query."""
        return shape_checkpoint(self._plan.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit by `maxOffsetsPerTrigger` or `maxBytesPerTrigger`."""
        records, size = self._options.trigger_records_max, self._options.trigger_bytes_max
        if records:
            return ReadMaxRows(records)
        return ReadMaxBytes(size) if size else ReadAllAvailable()

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        """The end of the micro-batch that begins at `start`."""
        records = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        # Spark passes one limit, and knows none that is made of two.
        is_all = isinstance(limit, ReadAllAvailable)
        size = None if is_all else self._options.trigger_bytes_max or None
        return shape_checkpoint(self._plan.next(read_checkpoint(start), records, size))

    def reportLatestOffset(self) -> Shape | None:
        """The ends of all queues, for the query's progress."""
        return shape_offsets(self._plan.latest) or None

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the query to the messages that exist now."""
        self._plan.set_target()

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        return self._plan.partitions(read_checkpoint(start), read_checkpoint(end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task, as Arrow batches."""
        assert isinstance(partition, SharePartition)
        return self._reader.batches(partition)

    def commit(self, end: Shape) -> None:
        """Reports that Spark has written all messages before `end`."""
        self._plan.done(read_checkpoint(end))

    def stop(self) -> None:
        """Closes all connections, as the query has ended."""
        if self._made is not None:
            self._made.close()
