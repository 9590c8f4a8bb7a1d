"""Rows that become visible once: tasks stage them at a broker, and the driver publishes them.

Each attempt of a task stages under a name of its own, and Spark passes only those of the attempts
that count to the driver. What the others staged is never seen. See docs/flows/staged.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sprocket.base.backoff import pauses
from sprocket.base.errors import (
    ReplyError,
    RequestNotSupported,
    RouteNotFound,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.clientcore.attempts import Attempts
from sprocket.clientcore.envelope import JAVA_PACKING, seal_batch
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList
from sprocket.protocol.command import Header
from sprocket.protocol.requests.staged import Published, PublishStaged, StageBatch
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.send import Request, Sender, WriteFailed

logger = logging.getLogger(__name__)

#: How long a broker remembers a stream after a micro-batch, and a batch write, s.
STREAM_KEPT_S, BATCH_KEPT_S = 30 * 86_400, 3_600
_PAUSE_FIRST_S, _PAUSE_LONGEST_S = 0.1, 2.0


@dataclass(frozen=True)
class StagedPart:
    """What an attempt of a task has staged.

    Attributes:
        writer, batch_id: the transaction of which it is a part.
        topic: one of its topics; empty if it had no rows.
    """

    writer: str
    batch_id: int
    attempt: str
    requests: int = 0
    topic: str = ""


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
            raise RouteNotFound(f"topic {topic} has no queue at {name}, the transactionBroker")
        return found

    def _header(self, request: Request, queue: QueueId) -> Header:
        if request.number < 0:
            request.number = self._requests
            self._requests += 1
            self._topic = request.envelope.topic
        return StageBatch(
            topic=queue.topic,
            queue_id=queue.number,
            born_timestamp=request.envelope.born_ms,
            writer=self._part.writer,
            batch_id=self._part.batch_id,
            attempt=self._part.attempt,
            number=request.number,
        )

    def _failure(self, error: SprocketError) -> SprocketError:
        return _explained(error, self._options.transaction_broker or "")


def publish(
    options: WriteOptions,
    parts: Sequence[StagedPart],
    *,
    is_first: bool,
    keep_seconds: int,
    waits: bool,
) -> Published:
    """Makes all rows of a transaction visible, unless that was done before.

    Args:
        waits: whether it returns when all are visible, and not as soon as that is decided.
        parts: what the tasks have staged, at least one.
        is_first: whether the broker may know nothing of the writer.

    Raises:
        WriteFailed: the broker does not do it; the text has the reason.
    """
    topic = next((one.topic for one in parts if one.topic), None)
    header = PublishStaged(
        topic=topic,
        writer=parts[0].writer,
        batch_id=parts[0].batch_id,
        is_first=is_first,
        keep_seconds=keep_seconds,
        waits=waits,
    )
    entries = [AttemptEntry(name=one.attempt, requests=one.requests) for one in parts]
    body = AttemptList(attempts=entries).encode()
    with ConnectionPool(
        options.nameservers,
        signer=options.signer,
        tls=options.tls,
        timeout_s=options.timeout_ms / 1000,
    ) as pool:
        return _published(pool, options, topic or options.topic or "", header, body)


def _published(
    pool: ConnectionPool, options: WriteOptions, topic: str, header: PublishStaged, body: bytes
) -> Published:
    broker = options.transaction_broker or ""
    attempts, before = _attempts(options), -1
    while True:
        try:
            pool.route(topic or broker)  # each broker has a topic of its name
            connection = pool.to(broker, is_for_sending=True)
            reply = connection.ask(header, body=body).read(Published)
        except (TransportError, ReplyError, RouteNotFound) as error:
            if isinstance(error, TransportError):
                pool.hang_up_on(broker)
            if not attempts.another(error, broker):
                raise WriteFailed(
                    f"transaction {header.batch_id} of writer {header.writer} was not published by "
                    f"{broker}: {_explained(error, broker)}"
                ) from error
            time.sleep(attempts.pause(broker))
            continue
        if reply.is_finished or not header.waits:
            return reply
        if reply.published > before:
            attempts, before = _attempts(options), reply.published
        elif not attempts.another(TransportError("no progress"), broker):
            raise WriteFailed(f"{broker} publishes no more than {before} of {reply.messages} rows")


def _attempts(options: WriteOptions) -> Attempts:
    return Attempts(options.retries, pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S))


def _explained(error: SprocketError, broker: str) -> SprocketError:
    if isinstance(error, RequestNotSupported):
        return WriteFailed(
            f"broker {broker} stages no rows, as RocketMQ's own do not: leave out "
            "transactionBroker, and let consumers drop repeats by idempotencyProperty"
        )
    if "nothing is known of writer" in str(error):
        return WriteFailed(
            f"{error}. If its last rows are there and these are not, begin with this micro-batch: "
            "option transactionBegin"
        )
    return error
