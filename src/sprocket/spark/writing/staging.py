"""Rows that become visible once: tasks stage them at a broker, and the driver publishes them.

Each attempt of a task stages under a name of its own, and Spark passes only those of the attempts
that count to the driver (`publishing`). What the others staged is never seen. See
docs/flows/staged.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.base.errors import RouteNotFound, SprocketError, UsageError
from sprocket.clientcore.envelope import JAVA_PACKING, NEW_TOPIC_QUEUES, seal_batch
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.command import Header
from sprocket.protocol.requests.staged import StageBatch
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.failures import explained
from sprocket.spark.writing.send import Request, Sender
from sprocket.spark.writing.staged_part import StagedPart


class StagingSender(Sender):
    """Stages the messages of one task.

    Args:
        part: under which name.
    """

    def __init__(self, options: WriteOptions, part: StagedPart) -> None:
        super().__init__(options)
        self._part = part
        self._requests = 0
        self._topic = ""

    @property
    def part(self) -> StagedPart:
        """What is staged, once `finish` has returned."""
        name = self._part
        return StagedPart(name.writer, name.batch_id, name.attempt, self._requests, self._topic)

    def _request(self, messages: Sequence[Message], fixed: QueueId | None) -> Request:
        for message in messages:
            if message.waits or is_retry_topic(message.topic):
                raise UsageError(
                    "with transactionBroker no row can have a delay, or be for a retry topic"
                )
        now_ms = self._clock.now_ms()
        envelope = seal_batch(messages, self.ids, now_ms, JAVA_PACKING)
        return Request(envelope, len(messages), fixed, self._attempts())

    def _queues_of(self, topic: str) -> tuple[QueueId, ...]:
        name = self._options.transaction_broker
        found = tuple(queue for queue in super()._queues_of(topic) if queue.broker == name)
        if not found:
            raise RouteNotFound(
                f"topic {topic} is not at {name}, the transactionBroker, and cannot be created "
                f"there by a write: sprocket topic create {topic} --broker {name}"
            )
        return found

    def _header(self, request: Request, queue: QueueId) -> Header:
        if request.number < 0:
            request.number = self._requests
            self._requests += 1
            self._topic = request.envelope.topic
        return StageBatch(
            topic=queue.topic,
            default_topic_queue_nums=NEW_TOPIC_QUEUES,
            queue_id=queue.number,
            born_timestamp=request.envelope.born_ms,
            writer=self._part.writer,
            batch_id=self._part.batch_id,
            attempt=self._part.attempt,
            number=request.number,
        )

    def _failure(self, error: SprocketError) -> SprocketError:
        return explained(error, self._options.transaction_broker or "")
