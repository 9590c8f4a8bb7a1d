"""The broker for taskiq: sends tasks to topics, and gives them to taskiq's receiver one by one.

A task is settled by taskiq alone: what it acknowledges is done, and what it does not comes again
when the process ends, or dies. Until then the process holds it and renews its invisible time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from sprocket.base.errors import ClosedError, UsageError
from sprocket.integrations.queues.names import topic_of
from sprocket.integrations.queues.options import QueueOptions
from sprocket.integrations.queues.queue_receiver import QueueReceiver
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.integrations.taskiq.labels import due_of, priority_of, queue_of
from sprocket.message.pop_handle import POP_COUNT_MAX


class RocketMQTaskiqBroker(AsyncBroker):
    """A broker of taskiq on RocketMQ. Results are a matter of taskiq's result backends.

    Args:
        nameservers: as for every client; None for `SPROCKET_NAMESERVERS`.
        queue: what workers receive, and where tasks without the label `queue_name` go.
        batch: how many tasks a worker receives at once, 1 to 32. More are faster if tasks are
            short; others do not get what waits for a worker that is busy.
        options: what all integrations of task queues share.
    """

    def __init__(
        self,
        nameservers: str | Sequence[str] | None = None,
        *,
        queue: str = "taskiq",
        batch: int = 1,
        options: QueueOptions | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(batch, int) or not 1 <= batch <= POP_COUNT_MAX:
            raise UsageError(f"batch is a whole number from 1 to {POP_COUNT_MAX}, not {batch!r}")
        self.queue = queue_of({"queue_name": queue}, queue)
        self._nameservers = nameservers
        self._batch = batch
        self._options = options or QueueOptions()
        #: Made at the start: workers of taskiq are forked from a process that has the broker.
        self._queues: TaskQueues | None = None
        self._declared: set[str] = set()

    async def startup(self) -> None:
        """Connects, makes the topic of the queue if need be, and does what taskiq wants then.

        Raises:
            TransportError, ReplyError: servers are away, or refuse.
            UsageError: the settings of the client, or the addresses, are wrong.
        """
        if self._queues is None:
            queues = TaskQueues(self._nameservers, self._options)
            await queues.start()
            try:
                await queues.declare(self._topic(self.queue))
            except BaseException:  # raised again; nothing is left open
                await queues.close()
                raise
            self._queues = queues
            self._declared = {self._topic(self.queue)}
        await super().startup()

    async def shutdown(self) -> None:
        """Does what taskiq wants at the end, and gives back what is not acknowledged."""
        try:
            await super().shutdown()
        finally:
            queues, self._queues = self._queues, None
            if queues is not None:
                await queues.close()

    async def kick(self, message: BrokerMessage) -> None:
        """Sends a task, which no worker receives before its delay is over.

        Raises:
            SendFailed: it is not known whether the task is stored.
            IllegalMessage: it is too large, or the broker holds no messages for later.
            UsageError: a label is wrong.
        """
        queues = self._started()
        topic = self._topic(queue_of(message.labels, self.queue))
        due_ms = due_of(message.labels, queues.now_ms())
        priority = priority_of(message.labels)
        if topic not in self._declared:
            await queues.declare(topic)
            self._declared.add(topic)
        await queues.send(topic, message.message, due_ms=due_ms, priority=priority)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Receives the tasks of the queue, until a broker refuses for good.

        Servers that are away are asked again and again.

        Raises:
            RequestNotSupported: a broker of RocketMQ 4.x, which knows no pops.
            NoPermission: this user may not receive.
        """
        queues = self._started()
        receiver = QueueReceiver(queues, self._topic(self.queue))
        while True:
            messages = await receiver.receive(self._batch)
            try:
                while messages:
                    message = messages.pop(0)
                    yield AckableMessage(
                        data=message.body, ack=partial(queues.acknowledge, [message])
                    )
            finally:
                await queues.give_back(messages)  # nobody asked for them

    def _started(self) -> TaskQueues:
        if self._queues is None:
            raise ClosedError("the broker is not started, or is shut down")
        return self._queues

    def _topic(self, queue: str) -> str:
        return topic_of(queue, self._options.prefix)
