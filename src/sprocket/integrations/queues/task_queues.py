"""Task queues on topics: declare, send, receive, settle, count and purge.

A queue is a topic, and all that work on it are one consumer group, which pops: each message is
delivered to one of them, acknowledged by itself and in any order, and comes again if its holder
dies. What is not settled is held by `HeldMessages`. Brokers without pops, those of RocketMQ 4.x,
are refused with their name.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, RouteNotFound, SprocketError
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ClientConfig, ProducerConfig, PullConfig
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.sending.fixed_queue import QueueSelector
from sprocket.client.sending.sender import Sent
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.integrations.queues import topics
from sprocket.integrations.queues.due_times import DUE, PRIORITY, hop_of, priority_of, wait_of
from sprocket.integrations.queues.held_messages import HeldMessages
from sprocket.integrations.queues.options import QueueOptions
from sprocket.message.message import Message
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.properties import RESERVED

logger = logging.getLogger(__name__)

#: The producer group, and the group in whose name positions are read.
_GROUP = "sprocket-tasks"
#: How long to wait until a topic that was made is on the routes, s.
_ROUTE_SECONDS = 5.0
#: How long a send waits for a topic to be on the routes, s, and its pauses. Name servers that begin
#: anew know no broker until it registers, and frameworks try again without a pause.
_UNKNOWN_SECONDS, _UNKNOWN_PAUSE = 2.0, 0.1
#: Messages that one receive of a purge takes.
_PURGE_BATCH = 32


class TaskQueues(Lifecycle):
    """The task queues of one process, on its event loop. Use it with `async with`.

    Args:
        nameservers: as for every client.
        options: how they behave.
        world: clock and randomness, for simulations.

    Methods raise `TransportError` and `ReplyError` if servers are away, or refuse.
    """

    def __init__(
        self,
        nameservers: str | Sequence[str] | None = None,
        options: QueueOptions | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        self.options = options or QueueOptions()
        self._world = world
        environment = world or ClientEnvironment.real()
        self._clock, self._entropy = environment.clock, environment.entropy
        client: dict[str, Any] = dict(self.options.client)
        self._client = ClientConfig(**client)
        self.producer = Producer(
            _GROUP, nameservers=nameservers, config=ProducerConfig(**client), world=world
        )
        self.reader = PullConsumer(
            _GROUP, nameservers=nameservers, config=PullConfig(**client), world=world
        )
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._simple = SimpleConfig(**client)
        self._stack: AsyncExitStack | None = None
        #: Topics that were seen, or were made here.
        self._known: set[str] = set()
        #: The highest priority of topics that were declared with priorities.
        self._max_priorities: dict[str, int] = {}
        self._held: dict[str, HeldMessages] = {}
        self._opening: dict[str, asyncio.Task[HeldMessages]] = {}

    async def start(self) -> None:
        """Starts the clients, which connect when needed."""
        if self._stack is not None:
            return
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.producer)
            await stack.enter_async_context(self.reader)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Gives back what is not settled, and closes the clients."""
        stack, self._stack = self._stack, None
        for task in self._opening.values():
            task.cancel()
        self._opening.clear()
        if stack is not None:
            await stack.aclose()
        self._held.clear()

    def now_ms(self) -> int:
        """The time, ms since 1970."""
        return self._clock.now_ms()

    async def check(self) -> None:
        """Asks a name server something, to see that one answers.

        Raises:
            TransportError, ReplyError: none does, or it refuses.
        """
        await self.exists("sprocket-tasks")

    async def exists(self, topic: str) -> bool:
        """Whether a topic is on the routes."""
        if topic in self._known:
            return True
        try:
            await self.reader.queues(topic)  # a producer counts topics that may be made
        except RouteNotFound:
            return False
        self._known.add(topic)
        return True

    async def declare(
        self, topic: str, queues: int | None = None, max_priority: int | None = None
    ) -> None:
        """Makes a topic, unless it exists or this user may not make topics.

        Args:
            queues: how many it has on each broker; None as the options say.
            max_priority: the highest priority of its messages; 0 for none, None as the options say.
        """
        highest = self.options.max_priority if max_priority is None else max_priority
        is_news = highest > 0 and self._max_priorities.get(topic) != highest
        if highest:
            self._max_priorities[topic] = highest
        if await self.exists(topic):
            if is_news:
                await topics.check_priorities(self._client, self._nameservers, topic, highest)
            return
        if not self.options.create_topics:
            return
        count = queues or self.options.queues
        try:
            await topics.make(self._client, self._nameservers, topic, count, highest)
        except SprocketError as error:
            logger.warning("topic %s is not made, the first message may do it: %s", topic, error)
            return
        deadline = Deadline.after(_ROUTE_SECONDS)
        while not await self.exists(topic) and deadline.left():  # noqa: ASYNC110 - servers say it
            await asyncio.sleep(0.05)

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        due_ms: int | None = None,
        priority: int = 0,
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Sent:
        """Sends a message, which nobody receives before it is due.

        Args:
            due_ms: the time, ms since 1970; None for at once.
            priority: a higher one is received first, if the topic was declared with priorities.

        Raises:
            SendFailed, UsageError, RouteNotFound: as `Producer.send`.
            IllegalMessage: the broker holds no messages, or not for so long.
        """
        wait = wait_of(due_ms, self.now_ms(), self.options.delay_max_ms)
        given = {k: v for k, v in (properties or {}).items() if k not in (DUE, PRIORITY)}
        highest = self._max_priorities.get(topic)
        level = None if highest is None else max(0, min(priority, highest))
        if wait.due is not None:
            given[DUE] = str(wait.due)
            if priority > 0:
                given[PRIORITY] = str(priority)
        if wait.deliver_at is None or level is None:
            message = Message(topic, body, tag=tag, properties=given, deliver_at=wait.deliver_at,
                              priority=level)  # fmt: skip
            return await self._sent(message)
        # A message that waits has no priority, and keeps the queue that it was sent to.
        message = Message(topic, body, tag=tag, properties=given, deliver_at=wait.deliver_at)
        choose = topics.queue_of_priority(level, self._entropy)
        return await self._sent(message, choose)

    async def _sent(self, message: Message, choose: QueueSelector | None = None) -> Sent:
        deadline = Deadline.after(_UNKNOWN_SECONDS)
        while True:
            try:
                return await self.producer.send(message, queue_selector=choose)
            except RouteNotFound:
                if not deadline.left():
                    raise
            await asyncio.sleep(_UNKNOWN_PAUSE)

    async def receive(self, topic: str, count: int, wait_ms: float) -> list[PoppedMessage]:
        """Receives and holds messages of a topic; an empty list if none come in time.

        Messages that are due later are sent on.

        Raises:
            RouteNotFound: the topic does not exist.
            RequestNotSupported: a broker does not know pops.
        """
        held = await self._holder(topic)
        messages = await held.receive(count, wait_ms)
        now_ms = self.now_ms()
        if all(DUE not in each.properties for each in messages):
            return messages
        due = []
        try:
            for message in messages:
                later = hop_of(message.properties, now_ms)
                if later is None:
                    due.append(message)
                else:
                    await self._send_on(message, later)
                    await held.acknowledge([message])
        except BaseException:  # raised again; what nobody has is given back
            await held.give_back(messages)
            raise
        return due

    async def acknowledge(self, messages: Iterable[PoppedMessage]) -> None:
        """Acknowledges messages: they are done."""
        for topic, some in _by_group(messages).items():
            if (held := self._held.get(topic)) is not None:
                await held.acknowledge(some)

    async def give_back(self, messages: Iterable[PoppedMessage]) -> None:
        """Has others get messages again at once."""
        for topic, some in _by_group(messages).items():
            if (held := self._held.get(topic)) is not None:
                await held.give_back(some)

    async def bury(self, message: PoppedMessage) -> None:
        """Makes a message a dead letter."""
        if (held := self._held.get(message.group)) is not None:
            await held.bury(message)

    async def count(self, topic: str) -> int:
        """How many messages of a topic are not received yet; those that wait do not count."""
        total = 0
        async with PullConsumer(
            topic, nameservers=self._nameservers, config=self.reader.config, world=self._world
        ) as group:
            try:
                queues = await group.queues(topic)
            except RouteNotFound:
                return 0
            for queue in queues:
                place = await group.committed(queue)
                if place is None:
                    place = await group.min_offset(queue)
                total += max(0, await group.max_offset(queue) - place)
        return total

    async def purge(self, topic: str) -> int:
        """Receives and acknowledges all that can be received now.

        Returns:
            How many messages that were.
        """
        total = 0
        if not await self.exists(topic):
            return total
        while messages := await self.receive(topic, _PURGE_BATCH, 0):
            await self.acknowledge(messages)
            total += len(messages)
        return total

    async def _holder(self, topic: str) -> HeldMessages:
        if (held := self._held.get(topic)) is not None:
            return held
        if self._stack is None:
            raise ClosedError("the task queues are not started, or are closed")
        if topic not in self._opening:
            self._opening[topic] = asyncio.ensure_future(self._open(topic, self._stack))
        return await asyncio.shield(self._opening[topic])

    async def _open(self, topic: str, stack: AsyncExitStack) -> HeldMessages:
        consumer = SimpleConsumer(
            topic,
            nameservers=self._nameservers,
            start="first",  # what was sent before the first worker came is for it
            config=self._simple,
            world=self._world,
        )
        try:
            consumer.subscribe(topic)
            await stack.enter_async_context(consumer)
            held = self._held[topic] = HeldMessages(consumer, self.options.invisible_ms)
            held.start()
            stack.push_async_callback(held.close)
            return held
        finally:
            self._opening.pop(topic, None)

    async def _send_on(self, message: PoppedMessage, due_ms: int) -> None:
        kept = {k: v for k, v in message.properties.items() if k not in RESERVED}
        await self.send(
            message.topic,
            message.body,
            due_ms=due_ms,
            priority=priority_of(message.properties),
            tag=message.tag,
            properties=kept,
        )


def _by_group(messages: Iterable[PoppedMessage]) -> dict[str, list[PoppedMessage]]:
    """Messages by their group, which has the name of their topic."""
    found: dict[str, list[PoppedMessage]] = {}
    for message in messages:
        found.setdefault(message.group, []).append(message)
    return found
