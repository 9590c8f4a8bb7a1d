"""Sends messages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError
from sprocket.client.base.arguments import milliseconds, settings
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ProducerConfig, nameserver_addresses
from sprocket.client.sending.request_reply import RequestReply, Responder
from sprocket.client.sending.sender import MessageSender, QueueSelector, Sent, fixed_queue
from sprocket.client.session.session import Session
from sprocket.clientcore.envelope import seal, seal_batch
from sprocket.clientcore.replies import SendStatus
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_group, check_topic

__all__ = ["Producer", "QueueSelector", "SendStatus", "Sent"]


class Producer(Lifecycle):
    """Sends messages to topics.

    Sends that run at the same time share one connection per broker and are written together, so
    concurrency is all it takes for speed::

        import asyncio
        from sprocket import Message, Producer

        async def main():
            async with Producer("order-senders", nameservers="127.0.0.1:9876") as producer:
                sent = await producer.send(Message("orders", b"one book", tag="new", keys=["o-1"]))
                print(sent.queue, sent.queue_offset, sent.status)

                orders = [Message("orders", b"no %d" % number) for number in range(1000)]
                await asyncio.gather(*(producer.send(order) for order in orders))

                # messages of one key go to one queue, in order if each send is awaited
                await producer.send(Message("orders", b"paid", tag="paid"), key="o-1")

        asyncio.run(main())

    Args:
        group: the producer group's name.
        nameservers: `host:port`, several with `;` between them or as a list. Without them the
            variable SPROCKET_NAMESERVERS or NAMESRV_ADDR counts.
        config: timeouts, retries, compression and limits.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name cannot be, or no name server is known.

    It belongs to the event loop it was started in. `sprocket.client.blocking` has the same
    without a loop.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_group(group)
        self.group = group
        self.config = settings(config, ProducerConfig)
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._world = world
        self._session: Session | None = None
        self._sender: MessageSender | None = None
        self._requests: RequestReply | None = None

    async def start(self) -> None:
        """Joins the connections of this process. No server needs to be there yet."""
        if self._session is not None:
            return
        self._clock = asyncio.get_running_loop().time
        self._session = Session.join(self._nameservers, self.config, self._world)
        self._session.add_producer(self.group)
        self._sender = MessageSender(self._session, self.group, self.config)
        self._requests = RequestReply(self._session, self._sender)

    async def close(self) -> None:
        """Leaves the brokers and, if it was the last client, closes the connections."""
        session, self._session = self._session, None
        self._sender = None
        if session is not None:
            await session.remove_producer(self.group)
            await session.leave()

    async def send(
        self,
        message: Message,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        queue_selector: QueueSelector | None = None,
        timeout_ms: float | None = None,
    ) -> Sent:
        """Sends a message and returns where the broker stored it.

        Without `key`, `queue` or `queue_selector`, queues take turns, and a send that failed is
        tried again at another broker. With one of them there is no other queue, and one attempt.

        Args:
            key: messages of equal keys go to one queue, the same as from Java producers.
            queue: the very queue.
            queue_selector: given all queues and the message, returns one of them.
            timeout_ms: for all attempts; the configured time-out by default.

        Raises:
            UsageError: the message cannot be sent; nothing was.
            RouteNotFound: the topic does not exist, and no broker makes topics.
            SendFailed: no attempt succeeded in time. It may have been stored nevertheless.
            ReplyError: the broker refused it.
            ClosedError: the producer was not started, or is closed.
        """
        session, sender = self._joined()
        envelope = seal(message, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        if key is None and queue is None and queue_selector is None:
            return (await sender.send(envelope, deadline))[0]
        route = await sender.route(message.topic, deadline)
        fixed = fixed_queue(route, message, key=key, queue=queue, selector=queue_selector)
        return (await sender.send_to(fixed, envelope, deadline))[0]

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        timeout_ms: float | None = None,
    ) -> list[Sent]:
        """Sends several messages of one topic in one request; all are stored, or none.

        They go to one queue and get offsets in a row. Together they may have as many bytes as one
        message. Arguments, results and errors are those of `send`.
        """
        session, sender = self._joined()
        envelope = seal_batch(messages, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        if key is None and queue is None:
            return await sender.send(envelope, deadline)
        route = await sender.route(envelope.topic, deadline)
        fixed = fixed_queue(route, messages[0], key=key, queue=queue)
        return await sender.send_to(fixed, envelope, deadline)

    async def send_oneway(
        self,
        message: Message,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """Sends a message that nobody confirms: fastest, and lost without a word if it is lost.

        Returns:
            The unique id that it was given.

        Raises:
            UsageError, RouteNotFound, ClosedError: as `send`.
            SendFailed: it did not even go out.
        """
        session, sender = self._joined()
        envelope = seal(message, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        fixed: QueueId | None = None
        if key is not None or queue is not None:
            route = await sender.route(message.topic, deadline)
            fixed = fixed_queue(route, message, key=key, queue=queue)
        await sender.send_oneway(fixed, envelope, deadline)
        return envelope.message_id

    async def recall(self, topic: str, handle: str, *, timeout_ms: float | None = None) -> str:
        """Takes a message back that waits for its time (`delay` or `deliver_at`).

        The broker notes it; should the message have come or been taken back before, nobody says.

        Args:
            handle: the `recall_handle` of the `Sent` that sending returned.

        Returns:
            The message's unique id.

        Raises:
            UsageError: that is no handle, or one for another topic.
            ReplyError: the broker refused: it is too late, or it takes nothing back.
            TransportError: the broker did not answer.
            RouteNotFound, ClosedError: as `send`.
        """
        _, sender = self._joined()
        check_topic(topic)
        return await sender.recall(topic, handle, self._deadline(timeout_ms))

    async def request(self, message: Message, *, timeout_ms: float = 3_000) -> Message:
        """Sends a message that asks for a reply, and returns the reply.

        Whoever consumes the message answers it with `reply`.

        Args:
            timeout_ms: for sending, consuming and replying together.

        Raises:
            CallTimeout: it was sent, and nobody replied in time. It may be consumed nevertheless.
            UsageError, RouteNotFound, SendFailed, ReplyError, ClosedError: as `send`.
        """
        session, _ = self._joined()
        envelope = seal(message, session.ids, session.world.clock.now_ms(), self.config)
        assert self._requests is not None, "it is made at the start"
        deadline = self._deadline(milliseconds("timeout_ms", timeout_ms))
        return await self._requests.ask(envelope, timeout_ms=timeout_ms, deadline=deadline)

    async def reply(
        self, request: StoredMessage, body: bytes, *, properties: Mapping[str, str] | None = None
    ) -> Sent:
        """Replies to a message that was sent by `request`.

        Args:
            properties: user properties of the reply.

        Raises:
            UsageError: the message asks for no reply, or the reply cannot be sent.
            SendFailed: the broker could not be reached, or could not reach who asked.
            RouteNotFound, ReplyError, ClosedError: as `send`.
        """
        session, _ = self._joined()
        return await Responder(session, self.group).reply(request, body, properties=properties)

    async def queues(self, topic: str) -> list[QueueId]:
        """The topic's queues that take messages, sorted; also those of a topic not yet made.

        Raises:
            RouteNotFound, SendFailed, ClosedError: as `send`.
        """
        _, sender = self._joined()
        check_topic(topic)
        return list((await sender.route(topic, self._deadline(None))).writable)

    def _joined(self) -> tuple[Session, MessageSender]:
        if self._session is None or self._sender is None:
            raise ClosedError("the producer is not started, or is closed")
        return self._session, self._sender

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        if timeout_ms is None:
            timeout_ms = self.config.send_timeout_ms
        else:
            timeout_ms = milliseconds("timeout_ms", timeout_ms)
        return Deadline(self._clock() + timeout_ms / 1000)
