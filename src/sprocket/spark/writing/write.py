"""The batch write that Spark calls: each task sends its rows and counts the acknowledged ones.

At least once: a task that runs again sends its rows again. `idempotencyProperty` gives each row a
text that is the same both times.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    WriterCommitMessage,
)

from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.worker import task_counter

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


@dataclass
class Written(WriterCommitMessage):
    """How many messages of a task were acknowledged."""

    messages: int


class RowWriter:
    """The common part of batch and stream writers.

    Args:
        options: how to write.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        #: Identifies this write; tasks that run again have the same name.
        self._name = uuid.uuid4().hex[:12]

    def send(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Sends all rows of a task and waits for the last acknowledgement.

        Raises:
            WriteFailed: brokers did not accept them.
            UsageError: a row cannot be a message.
        """
        from sprocket.runtime.clock import SystemClock
        from sprocket.spark.writing.encoding import encoded
        from sprocket.spark.writing.packing import RowPacker
        from sprocket.spark.writing.rows import RowMessages
        from sprocket.spark.writing.send import Sender

        task_counter.task_begins()
        name = self._task_name()
        messages = RowMessages(self._options, name)
        with Sender(self._options) as sender:
            packer, clock = RowPacker(self._options, sender.ids, name), SystemClock()
            for batch in encoded(batches, self._options):
                packed = packer.pack(batch, clock.now_ms(), messages.count)
                if packed is None:
                    sender.send(messages.of(batch))
                    continue
                sender.send_packed(packed)
                messages.skip(batch.num_rows)
            sender.finish()
            return Written(sender.acknowledged)

    def _task_name(self) -> str:
        """A name that stays the same if the task runs again; in a stream even after a restart."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is None:
            return self._name
        query = task.getLocalProperty("sql.streaming.queryId")
        batch = task.getLocalProperty("streaming.sql.batchId")
        name = f"{query}-{batch}" if query and batch else self._name
        return f"{name}-{task.partitionId()}"


class RocketMQWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions) -> None:
        self._writer = RowWriter(options)

    def write(self, iterator: Iterator[Any]) -> Written:
        """Sends the rows of one task."""
        return self._writer.send(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        """Logs that all tasks are done."""
        logger.info("%d messages written", _total(messages))

    def abort(self, messages: Sequence[Any]) -> None:
        """Logs that a task failed; messages that were sent stay."""
        logger.warning("a write failed after %d messages were written", _total(messages))


def _total(messages: Sequence[Any]) -> int:
    return sum(one.messages for one in messages if one is not None)
