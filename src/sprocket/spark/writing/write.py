"""The batch write that Spark calls: each task sends its rows and counts the acknowledged ones.

At least once: a task that runs again sends its rows again. `idempotencyProperty` gives each row a
text that is the same both times. With `transactionBrokers` exactly once: see `staging`.
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

    from sprocket.spark.writing.staged_part import StagedPart
    from sprocket.spark.writing.staging import StagingSender

logger = logging.getLogger(__name__)


@dataclass
class Written(WriterCommitMessage):
    """How many messages of a task were acknowledged, and what is staged of them."""

    messages: int
    staged: StagedPart | None = None


class RowWriter:
    """The common part of batch and stream writers.

    Args:
        options: how to write.
        is_stream: whether its tasks write a micro-batch of a stream.
    """

    def __init__(self, options: WriteOptions, *, is_stream: bool = False) -> None:
        self._options = options
        self._is_stream = is_stream
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
        staging = self._staging()
        with staging or Sender(self._options) as sender:
            packer, clock = RowPacker(self._options, sender.ids, name), SystemClock()
            for batch in encoded(batches, self._options):
                packed = packer.pack(batch, clock.now_ms(), messages.count)
                if packed is None:
                    sender.send(messages.of(batch))
                    continue
                sender.send_packed(packed)
                messages.skip(batch.num_rows)
            sender.finish()
            return Written(sender.acknowledged, None if staging is None else staging.part)

    def publish(self, messages: Sequence[Any]) -> None:
        """Makes what the tasks have staged visible.

        Args:
            messages: what `send` has returned in each task that counts.

        Raises:
            WriteFailed: the broker does not do it.
        """
        parts = [one.staged for one in messages if one is not None and one.staged is not None]
        if not parts:
            return
        from sprocket.spark.writing.publishing import BATCH_KEPT_S, STREAM_KEPT_S, publish

        batch_id = parts[0].batch_id
        if publish(
            self._options,
            parts,
            is_first=batch_id in (0, self._options.transaction_begin),
            keep_seconds=STREAM_KEPT_S if self._is_stream else BATCH_KEPT_S,
            waits=not self._is_stream,  # the next micro-batch need not wait for the broker
        ):
            logger.warning("micro-batch %d was published before", batch_id)

    def _staging(self) -> StagingSender | None:
        """What stages the rows of this attempt of a task; None if rows are seen at once."""
        if not self._options.transaction_brokers:
            return None
        from sprocket.spark.writing.staged_part import StagedPart
        from sprocket.spark.writing.staging import StagingSender

        # A program that `foreachBatch` calls may write several times in one micro-batch, so only a
        # streaming write is a transaction by the number of its micro-batch.
        writer, batch_id = self._name, 0
        if self._is_stream and (found := _micro_batch()) is not None:
            writer, batch_id = found[0], int(found[1])
        part = StagedPart(writer, batch_id, uuid.uuid4().hex)
        return StagingSender(self._options, part)

    def _task_name(self) -> str:
        """A name that stays the same if the task runs again; in a stream even after a restart."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is None:
            return self._name
        found = _micro_batch()
        name = self._name if found is None else f"{found[0]}-{found[1]}"
        return f"{name}-{task.partitionId()}"


def _micro_batch() -> tuple[str, str] | None:
    """The query and the micro-batch of the task that runs here; None if it is of no stream."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return None
    query = task.getLocalProperty("sql.streaming.queryId")
    batch = task.getLocalProperty("streaming.sql.batchId")
    return (query, batch) if query and batch else None


class RocketMQWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions) -> None:
        self._writer = RowWriter(options)

    def write(self, iterator: Iterator[Any]) -> Written:
        """Sends the rows of one task."""
        return self._writer.send(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        """Publishes what is staged, and logs that all tasks are done."""
        self._writer.publish(messages)
        logger.info("%d messages written", _total(messages))

    def abort(self, messages: Sequence[Any]) -> None:
        """Logs that a task failed; messages that were sent stay."""
        logger.warning("a write failed after %d messages were written", _total(messages))


def _total(messages: Sequence[Any]) -> int:
    return sum(one.messages for one in messages if one is not None)
