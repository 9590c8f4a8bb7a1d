"""Sending for one task: messages gathered to requests, several on the way, each acknowledged.

A request is sent again when the connection breaks or the broker is busy, to another queue if none
was chosen; so a message may be stored twice, but never counts as written before a broker said so.
Blocking.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sprocket.base.backoff import pauses
from sprocket.base.errors import ReplyError, RouteNotFound, SprocketError, TransportError
from sprocket.clientcore.attempts import Attempts
from sprocket.clientcore.envelope import (
    JAVA_PACKING,
    NEW_TOPIC_QUEUES,
    Envelope,
    seal,
    seal_batch,
)
from sprocket.clientcore.queue_choice import QueueChooser, by_key
from sprocket.clientcore.replies import send_status
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.runtime.clock import SystemClock
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.rows import OutgoingMessage

#: Requests on the way at once.
_AHEAD_MAX = 8
_PAUSE_FIRST_S = 0.1
_PAUSE_LONGEST_S = 2.0
_LOOPBACK = bytes((127, 0, 0, 1))


class WriteFailed(SprocketError):
    """Messages could not be written. The text has topic, queue and reason."""


@dataclass(slots=True)
class _Request:
    """One request: what is in it, where it must go, where it went, and how often that failed."""

    envelope: Envelope
    messages: int
    fixed: QueueId | None
    attempts: Attempts
    queue: QueueId | None = None


class Sender:
    """Sends the messages of one task.

    Args:
        options: how to write.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._pool = ConnectionPool(
            options.nameservers,
            signer=options.signer,
            timeout_s=options.timeout_ms / 1000,
        )
        self._clock = SystemClock()
        self._ids = UniqueIds(address=_LOOPBACK, process=os.getpid(), token=os.urandom(4))
        self._queues: dict[str, tuple[QueueId, ...]] = {}
        self._chooser = QueueChooser(int.from_bytes(os.urandom(2)))
        #: Sent and not yet acknowledged, in the order of sending, with the reply's number.
        self._under_way: deque[tuple[_Request, BlockingConnection, int]] = deque()
        self._gathered: dict[tuple[str, QueueId | None], list[Message]] = {}
        self._gathered_bytes: dict[tuple[str, QueueId | None], int] = {}
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
        """Sends messages; some may still be on the way when it returns.

        Raises:
            WriteFailed: a broker said no, or did not answer often enough.
            UsageError: a message cannot be sent.
        """
        for one in outgoing:
            fixed = self.fixed_queue(one)
            message = one.message
            key = (message.topic, fixed)
            is_alone = message.waits or is_retry_topic(message.topic)
            if is_alone or len(message.body) >= JAVA_PACKING.compress_over_bytes:
                self._flush(key)
                self._post(self._request([message], fixed))
                continue
            self._gather(key, message)

    def finish(self) -> None:
        """Returns when everything has been acknowledged.

        Raises:
            WriteFailed: as `send`.
        """
        for key in list(self._gathered):
            self._flush(key)
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

    def _request(self, messages: Sequence[Message], fixed: QueueId | None) -> _Request:
        now_ms = self._clock.now_ms()
        if len(messages) == 1:
            envelope = seal(messages[0], self._ids, now_ms, JAVA_PACKING)
        else:
            envelope = seal_batch(messages, self._ids, now_ms, JAVA_PACKING)
        return _Request(envelope, len(messages), fixed, self._attempts())

    def _attempts(self) -> Attempts:
        return Attempts(self._options.retries, pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S))

    def fixed_queue(self, one: OutgoingMessage) -> QueueId | None:
        """The queue that the row or its key chooses; None if any will do.

        Raises:
            WriteFailed: the topic's queues are not known, or do not contain the one that is named.
        """
        message = one.message
        if one.queue_number is None and self._options.queue_by == "turn":
            return None
        queues = self._queues.get(message.topic) or self._known_queues(message.topic)
        if one.queue_number is None:
            words = " ".join(message.keys)
            return by_key(queues, words) if words else None
        for queue in queues:
            if queue.number == one.queue_number and one.broker in (None, queue.broker):
                return queue
        where = f"{one.broker or 'any broker'}:{one.queue_number}"
        raise WriteFailed(f"topic {message.topic} has no queue {where} that may be written")

    def _known_queues(self, topic: str) -> tuple[QueueId, ...]:
        """The topic's queues, asked for as often as a request is sent."""
        attempts = self._attempts()
        while True:
            try:
                return self._queues_of(topic)
            except (TransportError, RouteNotFound) as error:
                if not attempts.another(error):
                    raise WriteFailed(f"topic {topic}: no queue can be chosen: {error}") from error
            time.sleep(attempts.pause())

    def _queues_of(self, topic: str) -> tuple[QueueId, ...]:
        found = self._queues.get(topic)
        if found is None:
            route = self._pool.route_for_sending(topic, NEW_TOPIC_QUEUES)
            found = self._queues[topic] = route.writable
        return found

    def _post(self, request: _Request) -> None:
        """Sends a request; its answer is awaited when it is the oldest of those on their way.

        A few requests are on their way at once, as a broker that flushes or copies each before it
        answers would else be idle most of the time. Whatever fails here, from the route to the
        socket, counts as an attempt, and the next one looks at the route anew.
        """
        while len(self._under_way) >= _AHEAD_MAX:
            self._settle()
        attempts = request.attempts
        while True:
            request.queue = None
            try:
                queues = self._queues_of(request.envelope.topic)
                now = time.monotonic()
                queue = request.fixed or self._chooser.next(queues, now, not_at=attempts.failed_at)
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
        """Awaits the answer to the oldest request; sends it again if it must be."""
        request, connection, number = self._under_way.popleft()
        try:
            reply = connection.receive(number, timeout_s=self._options.timeout_ms / 1000)
            send_status(reply)
        except (TransportError, ReplyError) as error:
            # What else was on the way there fails one after the other; a connection made
            # meanwhile is not the one that broke.
            if isinstance(error, TransportError):
                self._pool.hang_up(connection)
            self._failed(request, error)
            self._post(request)
            return
        self.acknowledged += request.messages

    def _failed(self, request: _Request, error: SprocketError) -> None:
        """Counts a failed attempt; raises if there is to be no other."""
        broker = request.queue.broker if request.queue else ""
        self._queues.pop(request.envelope.topic, None)
        if not request.attempts.another(error, broker):
            place = request.queue or f"topic {request.envelope.topic}"
            raise WriteFailed(
                f"{place}: {request.messages} messages were not taken after "
                f"{request.attempts.count} attempts: {error}"
            ) from error

    def _header(self, request: _Request, queue: QueueId) -> SendMessageV2:
        return request.envelope.header(
            queue, group=self._options.group, new_topic_queues=NEW_TOPIC_QUEUES
        )
