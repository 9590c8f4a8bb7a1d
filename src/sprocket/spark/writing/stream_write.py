"""Writes a stream. Needs PySpark 4.1, which passes Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.write import RowWriter, Written


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    """The write of each micro-batch; Spark makes a new one for every batch."""

    def __init__(self, options: WriteOptions) -> None:
        self._writer = RowWriter(options, is_stream=True)

    def write(self, iterator: Iterator[Any]) -> Written:
        """Sends the rows of one task."""
        return self._writer.send(iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Publishes what is staged; without `transactionBrokers` all messages are there already."""
        self._writer.publish(messages)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Does nothing: a task failed. Messages that were sent stay, and are sent again with the
        batch; those that were staged are never seen.
        """
