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
from itertools import count
from types import TracebackType
from typing import Self

from sprocket.base.backoff import pauses
from sprocket.base.errors import ReplyError, RouteNotFound, SprocketError, TransportError
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.envelope import Envelope, seal, seal_batch
from sprocket.message.hashing import java_hash
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.runtime.clock import SystemClock
from sprocket.spark.brokers.cluster import Cluster
from sprocket.spark.brokers.connection import Wire
from sprocket.spark.brokers.pool import Wires
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.rows import Outgoing

#: Requests on the way at once.
_AHEAD_MAX = 8
_PAUSE_FIRST_S = 0.1
_PAUSE_LONGEST_S = 2.0
_LOOPBACK = bytes((127, 0, 0, 1))

#: The message is stored; with all but the first, not as safely as the broker is set to.
_STORED = {
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
}


class WriteFailed(SprocketError):
    """Messages could not be written. The text has topic, queue and reason."""


@dataclass(slots=True)
class _Request:
    """One request: what is in it, where it must go, where and how often it went."""

    envelope: Envelope
    messages: int
    fixed: QueueId | None
    queue: QueueId | None = None
    attempts: int = 0


class Sender:
    """Sends the messages of one task.

    Args:
        options: how to write.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._config = ProducerConfig()
        self._wires = Wires(
            options.nameservers,
            signer=options.signer,
            timeout_s=options.timeout_ms / 1000,
        )
        self._cluster = Cluster(self._wires)
        self._clock = SystemClock()
        self._ids = UniqueIds(address=_LOOPBACK, process=os.getpid(), token=os.urandom(4))
        self._queues: dict[str, list[QueueId]] = {}
        self._turns = count(int.from_bytes(os.urandom(2)))
        #: Sent and not yet acknowledged, in the order of sending, with the reply's number.
        self._under_way: deque[tuple[_Request, Wire, int]] = deque()
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
        self._wires.close()

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Sends messages; some may still be on the way when it returns.

        Raises:
            WriteFailed: a broker said no, or did not answer often enough.
            UsageError: a message cannot be sent.
        """
        for one in outgoing:
            fixed = self._fixed(one)
            message = one.message
            key = (message.topic, fixed)
            is_alone = message.waits or is_retry_topic(message.topic)
            if is_alone or len(message.body) >= self._config.compress_over_bytes:
                self._flush(key)
                sealed = seal(message, self._ids, self._clock.now_ms(), self._config)
                self._post(_Request(sealed, 1, fixed))
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
            self._post(_Request(self._sealed(messages), len(messages), key[1]))

    def _sealed(self, messages: Sequence[Message]) -> Envelope:
        now_ms = self._clock.now_ms()
        if len(messages) == 1:
            return seal(messages[0], self._ids, now_ms, self._config)
        return seal_batch(messages, self._ids, now_ms, self._config)

    def _fixed(self, one: Outgoing) -> QueueId | None:
        """The queue that the row or its key chooses."""
        message = one.message
        if one.queue_number is None and self._options.queue_by == "turn":
            return None
        queues = self._known_queues(message.topic)
        if one.queue_number is None:
            words = " ".join(message.keys)
            return queues[abs(java_hash(words)) % len(queues)] if words else None
        for queue in queues:
            if queue.number == one.queue_number and one.broker in (None, queue.broker):
                return queue
        where = f"{one.broker or 'any broker'}:{one.queue_number}"
        raise WriteFailed(f"topic {message.topic} has no queue {where} that may be written")

    def _known_queues(self, topic: str) -> list[QueueId]:
        """The topic's queues, asked for as often as a request is sent."""
        waits = pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S)
        left = self._options.retries
        while True:
            try:
                return self._queues_of(topic)
            except (TransportError, RouteNotFound) as error:
                if left <= 0 or not (error.retriable or error.refresh_route):
                    raise WriteFailed(f"topic {topic}: no queue can be chosen: {error}") from error
                left -= 1
            time.sleep(next(waits))

    def _queues_of(self, topic: str) -> list[QueueId]:
        found = self._queues.get(topic)
        if found is None:
            found = self._queues[topic] = self._cluster.writable(topic)
        return found

    def _post(self, request: _Request) -> None:
        while len(self._under_way) >= _AHEAD_MAX:
            self._settle()
        waits = pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S)
        while True:
            try:
                queues = self._queues_of(request.envelope.topic)
                request.queue = request.fixed or queues[next(self._turns) % len(queues)]
                wire = self._wires.to(request.queue.broker)
                number = wire.send(self._header(request), body=request.envelope.body)
            except (TransportError, ReplyError, RouteNotFound) as error:
                if request.queue is not None and isinstance(error, TransportError):
                    self._wires.hang_up_on(request.queue.broker)
                self._failed(request, error)
                time.sleep(next(waits))
                continue
            self._under_way.append((request, wire, number))
            return

    def _settle(self) -> None:
        """Awaits the answer to the oldest request; sends it again if it must be."""
        request, wire, number = self._under_way.popleft()
        try:
            reply = wire.receive(number, timeout_s=self._options.timeout_ms / 1000)
            _check(reply)
        except (TransportError, ReplyError) as error:
            # What else was on the way there fails one after the other; a connection made
            # meanwhile is not the one that broke.
            if isinstance(error, TransportError):
                self._wires.hang_up(wire)
            self._failed(request, error)
            time.sleep(min(_PAUSE_FIRST_S * 2**request.attempts, _PAUSE_LONGEST_S))
            self._post(request)
            return
        self.acknowledged += request.messages

    def _failed(self, request: _Request, error: SprocketError) -> None:
        """Makes ready for another attempt; raises if there is to be none."""
        request.attempts += 1
        place = request.queue or f"topic {request.envelope.topic}"
        if request.attempts > self._options.retries or not (error.retriable or error.refresh_route):
            raise WriteFailed(
                f"{place}: {request.messages} messages were not taken after "
                f"{request.attempts} attempts: {error}"
            ) from error
        self._queues.pop(request.envelope.topic, None)

    def _header(self, request: _Request) -> SendMessageV2:
        queue = request.queue
        assert queue is not None
        return request.envelope.header(
            queue,
            group=self._options.group,
            new_topic_queues=self._config.new_topic_queues,
        )


def _check(reply: Command) -> None:
    if reply.code not in _STORED:
        raise ReplyError.of(reply.code, reply.remark or "")
