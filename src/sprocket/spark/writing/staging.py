"""Rows that become visible once: tasks stage them at a broker, and the driver publishes them.

Each attempt of a task stages under a name of its own, and Spark passes only those of the attempts
that count to the driver (`publishing`). What the others staged is never seen. See
docs/flows/staged.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
        #: By broker.
        self._requests: dict[str, int] = {}
        self._topics: dict[str, str] = {}

    @property
    def part(self) -> StagedPart:
        """What is staged, once `finish` has returned."""
        return replace(self._part, requests=dict(self._requests), topics=dict(self._topics))

    def _request(self, messages: Sequence[Message], fixed: QueueId | None) -> Request:
        for message in messages:
            if message.waits or is_retry_topic(message.topic):
                raise UsageError(
                    "with transactionBrokers no row can have a delay, or be for a retry topic"
                )
        now_ms = self._clock.now_ms()
        envelope = seal_batch(messages, self.ids, now_ms, JAVA_PACKING)
        return Request(envelope, len(messages), fixed, self._attempts())

    def _queues_of(self, topic: str) -> tuple[QueueId, ...]:
        names = self._options.transaction_brokers
        found = tuple(queue for queue in super()._queues_of(topic) if queue.broker in names)
        if not found:
            raise RouteNotFound(
                f"topic {topic} is at none of the transactionBrokers {', '.join(names)}, and "
                f"cannot be created there by a write: sprocket topic create {topic} --broker "
                f"{names[0]}"
            )
        return found

    # A request whose reply was lost may be stored, so it stays at its broker, which then knows it.
    def _possible(self, request: Request, queues: Sequence[QueueId]) -> Sequence[QueueId]:
        if not request.broker:
            return queues
        found = [queue for queue in queues if queue.broker == request.broker]
        if not found:
            raise RouteNotFound(f"{request.broker}, at which rows are staged, takes no messages")
        return found

    def _header(self, request: Request, queue: QueueId) -> Header:
        if not request.broker:
            request.broker, request.number = queue.broker, self._requests.get(queue.broker, 0)
            self._requests[queue.broker] = request.number + 1
            self._topics[queue.broker] = request.envelope.topic
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

    def _failure(self, error: SprocketError, broker: str) -> SprocketError:
        return explained(error, broker)
