"""Receives one queue's messages for one consumer thread of dramatiq.

What is received is held by the task queues of the process, not by a consumer: so a consumer that
dramatiq makes anew after a failure settles what an earlier one received.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dramatiq import Consumer, Message, MessageProxy
from dramatiq.errors import ConnectionClosed, DecodeError

from sprocket.base.errors import ReplyError, TransportError
from sprocket.client.base.background_loop import BlockingClient, on_the_loop, opened_by, waiting
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)


class BlockingTaskQueues(BlockingClient[TaskQueues]):
    """The task queues of one process, without a loop."""

    @opened_by(TaskQueues)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous task queues."""

    declare = waiting(TaskQueues.declare)
    send = waiting(TaskQueues.send)
    receive = waiting(TaskQueues.receive)
    acknowledge = waiting(TaskQueues.acknowledge)
    give_back = waiting(TaskQueues.give_back)
    bury = waiting(TaskQueues.bury)
    count = waiting(TaskQueues.count)
    purge = waiting(TaskQueues.purge)
    now_ms = on_the_loop(TaskQueues.now_ms)


class PoppedProxy(MessageProxy):
    """A message of dramatiq with the one that was popped."""

    def __init__(self, message: Message[Any], popped: PoppedMessage) -> None:
        super().__init__(message)
        self.popped = popped


class PoppingConsumer(Consumer):
    """Iterates over a queue's messages; None when none comes in time.

    Its own thread iterates, and the worker's threads settle.

    Args:
        prefetch: how many messages may be unsettled.
        timeout: how long one step of the iteration waits, ms.

    Methods raise dramatiq's `ConnectionClosed` if servers are away, or refuse.
    """

    def __init__(
        self, queues: BlockingTaskQueues, topic: str, prefetch: int, timeout: float
    ) -> None:
        self._queues = queues
        self._topic = topic
        self._prefetch = prefetch
        self._timeout = timeout
        self._ready: deque[PoppedMessage] = deque()
        #: Messages that were handed out and are not settled, by identity.
        self._out: dict[int, PoppedMessage] = {}
        self._settled = threading.Event()

    def __next__(self) -> PoppedProxy | None:
        """Receives the next message."""
        if not self._ready and not self._receive():
            return None
        popped = self._ready.popleft()
        try:
            message = Message.decode(popped.body)
        except DecodeError:
            logger.exception("message %s of %s is none of dramatiq's, and becomes a dead letter",
                             popped.message_id, popped.topic)  # fmt: skip
            with _closed_if_away():
                self._queues.bury(popped)
            return None
        self._out[id(popped)] = popped
        return PoppedProxy(message, popped)

    def ack(self, message: MessageProxy) -> None:
        """Acknowledges a message: it is done."""
        popped = self._free(message)
        with _closed_if_away():
            self._queues.acknowledge([popped])

    def nack(self, message: MessageProxy) -> None:
        """Makes a message a dead letter."""
        popped = self._free(message)
        with _closed_if_away():
            self._queues.bury(popped)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Has others get messages again at once."""
        found = [self._free(message) for message in messages]
        with _closed_if_away():
            self._queues.give_back(found)

    def close(self) -> None:
        """Gives back what was received and not handed out."""
        messages = list(self._ready)
        self._ready.clear()
        with _closed_if_away():
            self._queues.give_back(messages)

    def _receive(self) -> bool:
        capacity = self._prefetch - len(self._out)
        if capacity <= 0:
            self._settled.wait(self._timeout / 1000)
            self._settled.clear()
            return False
        with _closed_if_away():
            count = min(capacity, POP_COUNT_MAX)
            self._ready.extend(self._queues.receive(self._topic, count, self._timeout))
        return bool(self._ready)

    def _free(self, message: MessageProxy) -> PoppedMessage:
        assert isinstance(message, PoppedProxy)
        self._out.pop(id(message.popped), None)
        self._settled.set()
        return message.popped


@contextmanager
def _closed_if_away() -> Iterator[None]:
    try:
        yield
    except (TransportError, ReplyError) as error:
        raise ConnectionClosed(error) from error
