"""The broker for dramatiq: queues are topics, delays wait at the broker, failures are dead letters.

Dramatiq's own delay queues are not there: a worker would hold what is due later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from dramatiq import Broker, Message, Middleware
from dramatiq.errors import ConnectionClosed, QueueJoinTimeout, QueueNotFound

from sprocket.base.errors import ReplyError, RouteNotFound, SendFailed, TransportError
from sprocket.integrations.dramatiq.consumer import BlockingTaskQueues, PoppingConsumer
from sprocket.integrations.queues.names import topic_of
from sprocket.integrations.queues.options import QueueOptions, priority_given

#: The option of messages that dramatiq's broker for RabbitMQ has too: higher is more urgent, unlike
#: with the `priority` of actors, which orders what a worker has fetched.
_PRIORITY = "broker_priority"


class RocketMQDramatiqBroker(Broker):
    """A broker of dramatiq on RocketMQ, used by any thread.

    Args:
        nameservers: as for every client; None for `SPROCKET_NAMESERVERS`.
        middleware: as for every broker of dramatiq.
        options: what all integrations of task queues share.

    Methods raise dramatiq's `ConnectionClosed` if servers are away, or refuse.
    """

    def __init__(
        self,
        nameservers: str | Sequence[str] | None = None,
        *,
        middleware: list[Middleware] | None = None,
        options: QueueOptions | None = None,
    ) -> None:
        super().__init__(middleware=middleware)
        self._nameservers = nameservers
        self._options = options or QueueOptions()
        self._client: BlockingTaskQueues | None = None
        #: Held while the client is made: messages are sent from any thread.
        self._opening = threading.Lock()
        #: Topics that were made here, or seen.
        self._made: set[str] = set()

    def close(self) -> None:
        """Gives back what is not settled, and closes the client."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def declare_queue(self, queue_name: str) -> None:
        """Makes a queue known; its topic is made when it is first used."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = topic_of(queue_name, self._options.prefix)
            self.emit_after("declare_queue", queue_name)

    def consume(
        self, queue_name: str, prefetch: int = 1, timeout: float = 30_000
    ) -> PoppingConsumer:
        """A consumer of a queue that was declared.

        Raises:
            QueueNotFound: it was not.
        """
        return PoppingConsumer(self._opened(), self._topic(queue_name), prefetch, timeout)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Sends a message, which no worker receives before its delay in ms is over.

        Raises:
            QueueNotFound: its queue was not declared.
            IllegalMessage: it is too large, or the broker holds no messages for later.
            UsageError: `broker_priority` is no whole number.
        """
        client, topic = self._opened(), self._topic(message.queue_name)
        priority = priority_given(_PRIORITY, message.options.get(_PRIORITY))
        self.emit_before("enqueue", message, delay)
        due_ms = client.now_ms() + int(delay) if delay else None
        try:
            client.send(topic, message.encode(), due_ms=due_ms, priority=priority)
        except (SendFailed, RouteNotFound, TransportError) as error:
            raise ConnectionClosed(error) from error
        self.emit_after("enqueue", message, delay)
        return message

    def flush(self, queue_name: str) -> None:
        """Discards the messages of a queue that can be received now."""
        self._opened().purge(self._topic(queue_name))

    def flush_all(self) -> None:
        """Discards the messages of all queues that can be received now."""
        for queue_name in self.get_declared_queues():
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Waits until nothing of a queue is left to be received, for tests.

        What waits for its time, and what workers have, does not count.

        Raises:
            QueueJoinTimeout: `timeout` ms were over before.
        """
        client, topic = self._opened(), self._topic(queue_name)
        end = None if timeout is None else time.monotonic() + timeout / 1000
        while client.count(topic):
            if end is not None and time.monotonic() >= end:
                raise QueueJoinTimeout(queue_name)
            time.sleep(0.05)

    def _opened(self) -> BlockingTaskQueues:
        if (client := self._client) is not None:
            return client
        with self._opening:
            if self._client is None:
                client = BlockingTaskQueues(self._nameservers, self._options)
                client.start()
                self._client = client
            return self._client

    def _topic(self, queue_name: str) -> str:
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        topic: str = self.queues[queue_name]
        if topic not in self._made:
            try:
                self._opened().declare(topic)
            except (TransportError, ReplyError) as error:
                raise ConnectionClosed(error) from error
            self._made.add(topic)
        return topic
