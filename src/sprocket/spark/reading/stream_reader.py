"""A streaming read as Spark's engine calls it. Needs PySpark 4.2, which hands over the start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from sprocket.spark.options.options import StreamOptions
from sprocket.spark.options.positions import read_shape, shape_offsets
from sprocket.spark.reading.read import SharePartition, ShareReader

if TYPE_CHECKING:
    import pyarrow as pa

    from sprocket.spark.reading.stream import StreamPlan

Shape = dict[str, Any]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets go to and fro as JSON by topic, broker and queue number."""

    def __init__(self, options: StreamOptions, schema: pa.Schema) -> None:
        self._options = options
        self._reader = ShareReader(options, schema)
        #: Made in the process that is asked for offsets; the tasks' copies never have one.
        self._made: StreamPlan | None = None

    @property
    def _plan(self) -> StreamPlan:
        if self._made is None:
            from sprocket.spark.reading.stream import StreamPlan

            self._made = StreamPlan(self._options)
        return self._made

    def initialOffset(self) -> Shape:
        """Where a new query begins."""
        return shape_offsets(self._plan.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """What `maxOffsetsPerTrigger` says."""
        records = self._options.trigger_records_max
        return ReadMaxRows(records) if records else ReadAllAvailable()

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        """Where the micro-batch that begins at `start` ends."""
        records = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return shape_offsets(self._plan.next(read_shape(start), records))

    def reportLatestOffset(self) -> Shape | None:
        """The ends of all queues, for the query's progress."""
        return shape_offsets(self._plan.latest) or None

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing is read that comes later than now."""
        self._plan.set_target()

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        return self._plan.partitions(read_shape(start), read_shape(end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task, as Arrow batches."""
        assert isinstance(partition, SharePartition)
        return self._reader.batches(partition)

    def commit(self, end: Shape) -> None:
        """Everything before `end` has been written out."""
        self._plan.done(read_shape(end))

    def stop(self) -> None:
        """The query has ended."""
        if self._made is not None:
            self._made.close()
