"""Topics of a test's own, on any cluster: creates them, sends to them, and reads what they hold.

Names are numbered, so tests that share a broker do not see each other's messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count as numbers
from types import TracebackType
from typing import Any

from sprocket.admin import reading, topic_changes
from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.base.errors import TopicNotFound, TransportError, UsageError
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.producer import Producer
from sprocket.client.sending.sender import Sent
from sprocket.message.message import Message, StoredMessage
from sprocket.remoting.pool import Pool

#: How long `messages` waits for as many messages as a test expects, s.
WAIT_SECONDS = 10.0
#: Pause between two reads of a topic, s.
_PAUSE_SECONDS = 0.02
#: The producer group of what tests send through this module.
_GROUP = "sprocket-testing"


class IsolatedTopics(OpenedInOrder):
    """Use it with `async with`, on the loop in which its methods are awaited.

    Args:
        nameservers: `host:port` of the cluster's name servers, separated by `;`.
        world: clock and randomness of what it sends; None for the real ones.

    Attributes:
        nameservers: the addresses, for clients.
    """

    def __init__(self, nameservers: str, *, world: ClientEnvironment | None = None) -> None:
        self.nameservers = nameservers
        self._world = world
        self._numbers: Iterator[int] = numbers(1)
        self._caller: Caller | None = None
        self._producer: Producer | None = None

    async def _open(self, opened: AsyncExitStack) -> None:
        pool = await opened.enter_async_context(Pool())
        self._caller = Caller(pool, self.nameservers.split(";"))
        producer = Producer(_GROUP, nameservers=self.nameservers, world=self._world)
        self._producer = await opened.enter_async_context(producer)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._caller = self._producer = None
        await super().__aexit__(kind, error, trace)

    def group(self, name: str = "group") -> str:
        """Returns the name of a consumer group that no other test has: `name`, and a number."""
        return f"{name}-{next(self._numbers)}"

    async def topic(self, name: str = "topic", *, queues: int = 1, type: str | None = None) -> str:
        """Creates a topic that no other test has.

        Args:
            name: its name begins with this; a number follows.
            queues: its queues on each broker; with one, all messages are in one order.
            type: FIFO, DELAY, TRANSACTION, PRIORITY or another of RocketMQ's; None for no type.

        Returns:
            Its name.

        Raises:
            UsageError, ReplyError: the name or a setting is invalid.
        """
        made = f"{name}-{next(self._numbers)}"
        wanted = topic_changes.TopicSettings(
            read_queues=queues,
            write_queues=queues,
            attributes=None if type is None else {"message.type": type},
        )
        await topic_changes.create(self._asking(), made, wanted=wanted)
        return made

    async def send(self, topic: str, body: bytes | str, **fields: Any) -> Sent:
        """Sends a message, as `Producer.send`.

        Args:
            body: the payload; text is sent in UTF-8.
            fields: `tag`, `keys`, `properties`, `delay` and the other fields of `Message`.
        """
        if self._producer is None:
            raise UsageError("the test's broker does not run")
        payload = body.encode() if isinstance(body, str) else body
        return await self._producer.send(Message(topic, payload, **fields))

    async def messages(
        self, topic: str, count: int | None = None, *, wait_s: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Returns all messages of a topic in the order in which they were stored.

        Reading changes nothing: no group's offsets, and nothing that consumers get. A delayed
        message is in its topic once it is due.

        Args:
            count: how many there must be at least; None for what is there now.
            wait_s: how long to wait for them, s.

        Raises:
            AssertionError: there are fewer when the time is over.
            TopicNotFound, TransportError, BrokersFailed: there is no such topic, or a broker does
                not answer, and `count` is None.
        """
        end = asyncio.get_running_loop().time() + wait_s
        while True:
            try:
                found = [each async for each in reading.messages(self._asking(), topic)]
            except (TopicNotFound, TransportError, BrokersFailed):
                if count is None:
                    raise
                found = []
            if count is None or len(found) >= count:
                return sorted(found, key=_storing)
            if asyncio.get_running_loop().time() >= end:
                bodies = ", ".join(repr(each.body[:40]) for each in sorted(found, key=_storing))
                raise AssertionError(
                    f"{topic} has {len(found)} of {count} messages after {wait_s:g} s: [{bodies}]"
                )
            await asyncio.sleep(_PAUSE_SECONDS)

    def _asking(self) -> Caller:
        if self._caller is None:
            raise UsageError("the test's broker does not run")
        return self._caller


def _storing(message: StoredMessage) -> tuple[int, str, int]:
    """The order of storing: by time, and on one broker by the place in its log."""
    return (message.stored_ms, message.queue.broker, message.log_offset)
