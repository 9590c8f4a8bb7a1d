"""The batch read that Spark calls: planned on the driver, read as Arrow batches in the tasks.

A partition contains its ranges, and nothing else that may change the result: a second read of it
gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from sprocket.base.errors import CorruptRecord
from sprocket.spark.options.loss import ReadFailed, report_loss
from sprocket.spark.options.options import BatchOptions, ReadOptions
from sprocket.spark.reading.fetch import AHEAD_MAX, Chunk, Fetcher
from sprocket.spark.reading.pushdown import EVERYTHING, narrow_choice
from sprocket.spark.reading.ranges import Range, Share
from sprocket.spark.records.body_columns import BadBody, body_columns, check_decoded
from sprocket.spark.records.decode import Decoder
from sprocket.spark.worker import task_counter


class SharePartition(InputPartition):
    """The ranges that one task reads.

    Attributes:
        share: the ranges.
        addresses: brokers' addresses by name, from when the read was planned.
    """

    def __init__(self, share: Share, addresses: Mapping[str, str]) -> None:
        super().__init__(None)
        self.share = share
        self.addresses = dict(addresses)

    def __repr__(self) -> str:
        return f"SharePartition({', '.join(map(str, self.share))})"


class ShareReader:
    """Reads shares into batches; the common part of batch and streaming readers.

    Args:
        options: how to read.
        schema: of the batches.

    Raises:
        UsageError: a column needs an option that is not given.
    """

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        check_decoded(options, schema.names)
        self.options = options
        self.schema = schema

    def batches(self, partition: SharePartition) -> Iterator[pa.RecordBatch]:
        """The rows of a share, in the order of its ranges.

        Raises:
            ReadFailed: a range cannot be read completely; the text has topic, queue and offset.
        """
        task_counter.task_begins()
        bodies = body_columns(self.options, self.schema)
        decoder = Decoder(self.schema, self.options.filter, bodies)
        with Fetcher(self.options, partition.addresses) as fetcher:
            for place, one in enumerate(partition.share, 1):
                following = partition.share[place : place + AHEAD_MAX]
                yield from self._range(one, fetcher.chunks(one, following), decoder)
        if bodies is not None:
            bodies.report(partition)

    def _range(
        self, wanted: Range, chunks: Iterable[Chunk], decoder: Decoder
    ) -> Iterator[pa.RecordBatch]:
        missing = wanted.records
        for chunk in chunks:
            end = min(chunk.end, wanted.end)
            try:
                for batch in decoder.decode(chunk.records, wanted.queue, chunk.start, end):
                    missing -= batch.num_rows
                    yield batch
            except (CorruptRecord, BadBody) as error:
                raise ReadFailed(f"{wanted.queue} from offset {chunk.start}: {error}") from error
        if missing and self.options.filter.is_all:
            report_loss(self.options, wanted.queue, f"{missing} messages are gone in {wanted}")


class RocketMQReader(DataSourceReader):
    """A batch read."""

    def __init__(self, options: BatchOptions, schema: pa.Schema) -> None:
        self._options = options
        self._reader = ShareReader(options, schema)
        self._wanted = EVERYTHING

    def partitions(self) -> list[Any]:
        """One partition for each task; one without ranges if there is nothing to read."""
        # Only the planner's process needs this module, and those that it imports.
        from sprocket.spark.reading.plan import plan_batch

        shares, addresses = plan_batch(self._options, self._wanted)
        return [SharePartition(share, addresses) for share in shares or [()]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one partition, as Arrow batches."""
        assert isinstance(partition, SharePartition)
        return self._reader.batches(partition)


class NarrowedReader(RocketMQReader):
    """A batch read to which Spark pushes conditions down."""

    #: Columns whose conditions the read can apply.
    columns = ("topic", "broker", "queue_id", "queue_offset", "store_timestamp", "tag")

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Takes over some of the filters, and returns those that Spark must apply."""
        self._wanted, self._options, left = narrow_choice(filters, self.columns, self._options)
        self._reader = ShareReader(self._options, self._reader.schema)
        return left
