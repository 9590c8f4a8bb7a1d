"""Sends the messages of one task: collects them to requests, and waits for all acknowledgements.

A request is sent again if the connection breaks or the broker is busy, to another queue if the row
chose none. So a message may be stored twice, but counts as written only when a broker has
acknowledged it. Several requests are pending at once. Blocking.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from sprocket.base.backoff import pauses
from sprocket.base.errors import ReplyError, RouteNotFound, SprocketError, TransportError
from sprocket.clientcore.attempts import Attempts
from sprocket.clientcore.envelope import (
    JAVA_PACKING,
    NEW_TOPIC_QUEUES,
    Envelope,
    batch_envelope,
    seal,
    seal_batch,
)
from sprocket.clientcore.queue_choice import QueueChooser, by_key
from sprocket.clientcore.replies import send_status
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.command import Header
from sprocket.runtime.clock import SystemClock
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.packing import PackedRows
from sprocket.spark.writing.rows import OutgoingMessage

#: At most this many requests are pending at once.
_AHEAD_MAX = 8
_PAUSE_FIRST_S = 0.1
_PAUSE_LONGEST_S = 2.0
_LOOPBACK = bytes((127, 0, 0, 1))


@dataclass(slots=True)
class Request:
    """One request, the queue that its rows chose, the queue it went to, and its failed attempts.

    Attributes:
        number: counts those that are staged at a broker; -1 until it is sent.
        broker: the one at which it is staged; empty until then.
    """

    envelope: Envelope
    messages: int
    fixed: QueueId | None
    attempts: Attempts
    queue: QueueId | None = None
    number: int = -1
    broker: str = ""


class _Packed:
    """Messages that will go in one request, as they stand in its body."""

    __slots__ = ("_pieces", "count", "size")

    def __init__(self) -> None:
        self._pieces: list[memoryview] = []
        self.count = 0
        self.size = 0

    def add(self, piece: memoryview, count: int) -> None:
        """Adds messages."""
        self._pieces.append(piece)
        self.count += count
        self.size += len(piece)

    def take(self) -> bytes:
        """Removes all; returns the body."""
        body = b"".join(self._pieces)
        self._pieces, self.count, self.size = [], 0, 0
        return body


class Sender:
    """Sends the messages of one task.

    Args:
        options: how to write.

    Attributes:
        ids: makes the messages' unique keys.
        acknowledged: how many messages brokers have stored.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._pool = ConnectionPool(
            options.nameservers,
            signer=options.signer,
            tls=options.tls,
            timeout_s=options.timeout_ms / 1000,
        )
        self._clock = SystemClock()
        self.ids = UniqueIds(address=_LOOPBACK, process=os.getpid(), token=os.urandom(4))
        self._queues: dict[str, tuple[QueueId, ...]] = {}
        self._chooser = QueueChooser(int.from_bytes(os.urandom(2)))
        #: Requests without a reply yet, in the order of sending, with connection and number.
        self._under_way: deque[tuple[Request, BlockingConnection, int]] = deque()
        self._gathered: dict[tuple[str, QueueId | None], list[Message]] = {}
        self._gathered_bytes: dict[tuple[str, QueueId | None], int] = {}
        #: By topic.
        self._packed: dict[str, _Packed] = {}
        self.acknowledged = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def send(self, outgoing: Iterable[OutgoingMessage]) -> None:
        """Sends messages; some may still be unacknowledged when it returns.

        Raises:
            WriteFailed: a broker refused, or too many attempts failed.
            UsageError: a message cannot be sent.
        """
        for row in outgoing:
            fixed = self.fixed_queue(row)
            message = row.message
            key = (message.topic, fixed)
            is_alone = message.waits or is_retry_topic(message.topic)
            if is_alone or len(message.body) >= JAVA_PACKING.compress_over_bytes:
                self._flush(key)
                self._post(self._request([message], fixed))
                continue
            self._gather(key, message)

    def send_packed(self, rows: PackedRows) -> None:
        """The same for rows that may go to any queue.

        Raises:
            WriteFailed: as `send`.
        """
        packed = self._packed.setdefault(rows.topic, _Packed())
        offsets, at, end = rows.offsets, 0, len(rows.offsets) - 1
        while at < end:
            begin = int(offsets[at])
            room = begin + self._options.batch_bytes - packed.size
            fitting = int(np.searchsorted(offsets, room, side="right")) - 1
            last = min(fitting, at + self._options.batch_records - packed.count, end)
            if last <= at and packed.count:
                self._flush_packed(rows.topic)
                continue
            last = max(last, at + 1)
            packed.add(rows.content[begin : int(offsets[last])], last - at)
            at = last

    def _flush_packed(self, topic: str) -> None:
        packed = self._packed[topic]
        if count := packed.count:
            envelope = batch_envelope(topic, packed.take(), self.ids, self._clock.now_ms())
            self._post(Request(envelope, count, None, self._attempts()))

    def finish(self) -> None:
        """Returns when all messages are acknowledged.

        Raises:
            WriteFailed: as `send`.
        """
        for key in list(self._gathered):
            self._flush(key)
        for topic in self._packed:
            self._flush_packed(topic)
        while self._under_way:
            self._settle()

    def _gather(self, key: tuple[str, QueueId | None], message: Message) -> None:
        messages = self._gathered.setdefault(key, [])
        messages.append(message)
        size = self._gathered_bytes.get(key, 0) + len(message.body) + 200
        self._gathered_bytes[key] = size
        if len(messages) >= self._options.batch_records or size >= self._options.batch_bytes:
            self._flush(key)

    def _flush(self, key: tuple[str, QueueId | None]) -> None:
        messages = self._gathered.pop(key, None)
        self._gathered_bytes.pop(key, None)
        if messages:
            self._post(self._request(messages, key[1]))

    def _request(self, messages: Sequence[Message], fixed: QueueId | None) -> Request:
        now_ms = self._clock.now_ms()
        if len(messages) == 1:
            envelope = seal(messages[0], self.ids, now_ms, JAVA_PACKING)
        else:
            envelope = seal_batch(messages, self.ids, now_ms, JAVA_PACKING)
        return Request(envelope, len(messages), fixed, self._attempts())

    def _attempts(self) -> Attempts:
        return Attempts(self._options.retries, pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S))

    def fixed_queue(self, row: OutgoingMessage) -> QueueId | None:
        """The queue that the row or its key chooses; None if any queue may be used.

        Raises:
            WriteFailed: the topic's queues cannot be found, or the row's queue is not among them.
        """
        message = row.message
        if row.queue_number is None and self._options.queue_by == "turn":
            return None
        queues = self._queues.get(message.topic) or self._known_queues(message.topic)
        if row.queue_number is None:
            words = " ".join(message.keys)
            return by_key(queues, words) if words else None
        for queue in queues:
            if queue.number == row.queue_number and row.broker in (None, queue.broker):
                return queue
        where = f"{row.broker or 'any broker'}:{row.queue_number}"
        raise WriteFailed(f"topic {message.topic} has no queue {where} that can be written to")

    def _known_queues(self, topic: str) -> tuple[QueueId, ...]:
        """The topic's queues, requested with as many attempts as a send has."""
        attempts = self._attempts()
        while True:
            try:
                return self._queues_of(topic)
            except (TransportError, ReplyError, RouteNotFound) as error:
                if not attempts.another(error):
                    raise WriteFailed(f"topic {topic}: no queue can be chosen: {error}") from error
            time.sleep(attempts.pause())

    def _queues_of(self, topic: str) -> tuple[QueueId, ...]:
        found = self._queues.get(topic)
        if found is None:
            route = self._pool.route_for_sending(topic, NEW_TOPIC_QUEUES)
            found = self._queues[topic] = route.writable
        return found

    def _post(self, request: Request) -> None:
        """Sends a request. Its reply is awaited when it is the oldest pending one.

        A few requests are pending at once, because a broker that flushes or copies each message
        before it replies would otherwise be idle most of the time. Any failure here, from the route
        to the socket, counts as an attempt, and the next attempt requests the route again.
        """
        while len(self._under_way) >= _AHEAD_MAX:
            self._settle()
        attempts = request.attempts
        while True:
            request.queue = None
            try:
                queues = self._queues_of(request.envelope.topic)
                now = time.monotonic()
                queue = request.fixed or self._chooser.next(
                    self._possible(request, queues), now, not_at=attempts.failed_at
                )
                request.queue = queue
                if attempts.count:
                    time.sleep(attempts.pause(queue.broker))
                connection = self._pool.to(queue.broker, is_for_sending=True)
                number = connection.send(self._header(request, queue), body=request.envelope.body)
            except (TransportError, ReplyError, RouteNotFound) as error:
                if request.queue is not None and isinstance(error, TransportError):
                    self._pool.hang_up_on(request.queue.broker)
                self._failed(request, error)
                if request.queue is None:
                    time.sleep(attempts.pause())
                continue
            self._under_way.append((request, connection, number))
            return

    def _settle(self) -> None:
        """Awaits the reply to the oldest request; sends the request again if it failed."""
        request, connection, number = self._under_way.popleft()
        try:
            reply = connection.receive(number, timeout_s=self._options.timeout_ms / 1000)
            send_status(reply)
        except (TransportError, ReplyError) as error:
            # Other pending requests on this connection fail later, each for itself. Only this
            # connection is closed: one made meanwhile has not broken.
            if isinstance(error, TransportError):
                self._pool.hang_up(connection)
            self._failed(request, error)
            self._post(request)
            return
        self.acknowledged += request.messages

    def _failed(self, request: Request, error: SprocketError) -> None:
        """Counts a failed attempt; raises if it was the last."""
        broker = request.queue.broker if request.queue else ""
        self._queues.pop(request.envelope.topic, None)
        if not request.attempts.another(error, broker):
            place = request.queue or f"topic {request.envelope.topic}"
            raise WriteFailed(
                f"{place}: {request.messages} messages were not accepted after "
                f"{request.attempts.count} attempts: {self._failure(error, broker)}"
            ) from error

    def _failure(self, error: SprocketError, broker: str) -> SprocketError:
        """The error as the user gets it."""
        return error

    def _possible(self, request: Request, queues: Sequence[QueueId]) -> Sequence[QueueId]:
        """The queues to which a request may go, at least one."""
        return queues

    def _header(self, request: Request, queue: QueueId) -> Header:
        return request.envelope.header(
            queue, group=self._options.group, new_topic_queues=NEW_TOPIC_QUEUES
        )
