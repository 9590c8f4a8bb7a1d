"""The producer: sends messages, and requests with replies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError
from sprocket.client.base.arguments import milliseconds, settings
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.spans import wants_span
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.fixed_queue import QueueSelector
from sprocket.client.sending.many import KeyOf, ManySends
from sprocket.client.sending.request_reply import RequestReply, Responder
from sprocket.client.sending.sender import MessageSender, Sent
from sprocket.client.sending.typed_messages import Codecs, MessageAttributes, TypedMessages
from sprocket.client.session.session import Session
from sprocket.clientcore.envelope import seal, seal_batch
from sprocket.clientcore.replies import SendStatus
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_group, check_topic

__all__ = ["Producer", "QueueSelector", "SendStatus", "Sent"]


class Producer(Lifecycle):
    """Sends messages to topics.

    Sends that run at the same time share one connection to each broker and are written together. So
    run many sends at once for a high throughput, or give many messages to `send_many`::

        import asyncio
        from sprocket import Message, Producer

        async def main():
            async with Producer("order-senders", nameservers="127.0.0.1:9876") as producer:
                sent = await producer.send(Message("orders", b"one book", tag="new", keys=["o-1"]))
                print(sent.queue, sent.queue_offset, sent.status)

                orders = [Message("orders", b"no %d" % number) for number in range(1000)]
                await asyncio.gather(*(producer.send(order) for order in orders))
                await producer.send_many(orders)  # the same in few requests

                # messages with one key go to one queue, in order if each send is awaited
                await producer.send(Message("orders", b"paid", tag="paid"), key="o-1")

        asyncio.run(main())

    Args:
        group: the producer group's name.
        nameservers: `host:port`, or several, separated by `;` or as a list. None: the environment
            variable SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        config: timeouts, retries, compression and limits.
        codecs: of objects that are sent: one for all topics, or one for each; others are JSON.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name is invalid.
        ConfigError: there is no name server, or an address is invalid.

    A producer belongs to the event loop in which it was started. `sprocket.client.blocking` has the
    same class for programs without a loop.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        codecs: Codecs = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_group(group)
        self.group = group
        self.config = settings(config, ProducerConfig)
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._world = world
        self._typed = TypedMessages(codecs)
        self._session: Session | None = None
        self._sender: MessageSender | None = None
        self._requests: RequestReply | None = None

    async def start(self) -> None:
        """Starts the producer. It connects when needed, so no server has to run yet."""
        if self._session is not None:
            self._session.check_loop()
            return
        self._clock = asyncio.get_running_loop().time
        self._session = Session.join(self._nameservers, self.config, self._world)
        self._session.add_producer(self.group)
        self._sender = MessageSender(self._session, self.group, self.config)
        self._requests = RequestReply(self._session, self._sender)

    async def close(self) -> None:
        """Unregisters at the brokers; the last client of the process closes the connections."""
        self._check_loop()
        session, self._session = self._session, None
        self._sender = None
        if session is not None:
            await session.remove_producer(self.group)
            await session.leave()

    async def send(
        self,
        message: Message | str,
        body: object = None,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        queue_selector: QueueSelector | None = None,
        timeout_ms: float | None = None,
    ) -> Sent:
        """Sends a message, or an object to a topic, and returns where the broker stored it.

        By default the queues are used in round robin, and a failed send is repeated at another
        broker. With `key`, `queue` or `queue_selector`, of which only one may be given, the queue
        is fixed, and a failed send is repeated there. While a broker refuses or is away, it is
        tried until the timeout, and at once when it has another master.

        Args:
            message: the message, or the name of a topic.
            body: with a topic's name: an object, encoded by the topic's codec as by `message`.
            key: messages with equal keys go to one queue, the same one as from Java producers.
            queue: the queue for the message.
            queue_selector: a function that takes all queues and the message, and returns a queue.
            timeout_ms: limit for all attempts together; by default `config.send_timeout_ms`.

        Raises:
            UsageError: the message or an argument is invalid; nothing was sent.
            RouteNotFound: the topic does not exist and no broker creates it automatically, or no
                broker accepts messages for it.
            SendFailed: no attempt succeeded in time. The message may be stored nevertheless.
            ReplyError: the broker refused the message.
            ClosedError: the producer is not started, or is closed.
            BodyMismatch, RegistryUnavailable: as for `message`.
        """
        # Whatever else was given as a message, `seal` says what is wrong with it.
        whole: Any = message
        if body is not None:
            whole = await self._typed.message(message, body, {})
        if self._spans is not None and wants_span(whole):
            return await self._spans.send(
                partial(Producer.send, self), whole, key=key, queue=queue,
                queue_selector=queue_selector, timeout_ms=timeout_ms,
            )  # fmt: skip
        session, sender = self._joined()
        envelope = seal(whole, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        if key is None and queue is None and queue_selector is None:
            return (await sender.send(envelope, deadline))[0]
        fixed = await sender.fixed(whole, deadline, key=key, queue=queue, selector=queue_selector)
        return (await sender.send(envelope, deadline, fixed))[0]

    async def message(
        self, topic: str, body: object, **attributes: Unpack[MessageAttributes]
    ) -> Message:
        """Makes a message of an object, for any of the methods that send::

            await producer.send(await producer.message("orders", order, tag="new"), key=order.id)

        Args:
            topic: its name; the topic's codec encodes the object.
            body: a dataclass, a struct of msgspec, a model of pydantic, or a plain value.
            attributes: as for `Message`. The property `contentType` is set unless it is given.

        Raises:
            BodyMismatch: the object does not fit the topic's codec.
            RegistryUnavailable: a schema has to be fetched, and cannot be.
        """
        return await self._typed.message(topic, body, attributes)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        timeout_ms: float | None = None,
    ) -> list[Sent]:
        """Sends several messages of one topic in one request; the broker stores all or none.

        They go to one queue and get consecutive offsets. All together may be as large as one
        message. Other arguments and the errors are those of `send`; there is one result for each
        message, in the same order.
        """
        if self._spans is not None and wants_span(messages):
            return await self._spans.send_batch(
                partial(Producer.send_batch, self), messages, key=key, queue=queue,
                timeout_ms=timeout_ms,
            )  # fmt: skip
        session, sender = self._joined()
        envelope = seal_batch(messages, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        if key is None and queue is None:
            return await sender.send(envelope, deadline)
        fixed = await sender.fixed(messages[0], deadline, key=key, queue=queue)
        return await sender.send(envelope, deadline, fixed)

    async def send_many(
        self,
        messages: Iterable[Message],
        *,
        key_of: KeyOf | None = None,
        queue: QueueId | None = None,
        timeout_ms: float | None = None,
    ) -> list[Sent]:
        """Sends any number of messages of any topics in few requests, by batches.

        The messages of a request are in one queue, in their order. With `key_of` or `queue`, all
        messages of a queue are stored in the order of the list: each request waits for the one
        before. Delayed, large and prioritised messages go alone. What cannot be sent costs no other
        message.

        Args:
            messages: the messages; the list may be of any length.
            key_of: gives a message's key, as in `send`; None for any queue.
            queue: the queue for all of them.
            timeout_ms: limit for all attempts of one request; by default `config.send_timeout_ms`.

        Returns:
            A result for each message, in the same order.

        Raises:
            SomeNotSent: not all were sent; it has the results, and the reasons of the others.
            ClosedError: the producer is not started, or is closed.
        """
        session, sender = self._joined()
        if timeout_ms is not None:
            timeout_ms = milliseconds("timeout_ms", timeout_ms)
        many = ManySends(session, sender, self.config, lambda: self._deadline(timeout_ms))
        return await many.send(messages, key_of=key_of, queue=queue)

    async def send_oneway(
        self,
        message: Message,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """Sends a message without a confirmation: the fastest way, but a loss is not noticed.

        Returns:
            The unique id of the message.

        Raises:
            UsageError, RouteNotFound, ClosedError: as for `send`.
            SendFailed: the message could not be written to a connection.
        """
        if self._spans is not None and wants_span(message):
            return await self._spans.send(
                partial(Producer.send_oneway, self), message, key=key, queue=queue,
                timeout_ms=timeout_ms,
            )  # fmt: skip
        session, sender = self._joined()
        envelope = seal(message, session.ids, session.world.clock.now_ms(), self.config)
        deadline = self._deadline(timeout_ms)
        fixed: QueueId | None = None
        if key is not None or queue is not None:
            fixed = await sender.fixed(message, deadline, key=key, queue=queue)
        await sender.send_oneway(fixed, envelope, deadline)
        return envelope.message_id

    async def recall(self, topic: str, handle: str, *, timeout_ms: float | None = None) -> str:
        """Recalls a delayed message (one with `delay` or `deliver_at`) before it is delivered.

        The broker accepts the recall without a check, so this succeeds as well if the message has
        been delivered or recalled already.

        Args:
            topic: the topic of the message.
            handle: the `recall_handle` of the `Sent` that the send returned.
            timeout_ms: by default `config.send_timeout_ms`.

        Returns:
            The unique id of the message.

        Raises:
            UsageError: the handle is invalid or belongs to another topic.
            ReplyError: the broker refused, because it is too late or recalls are switched off.
            TransportError: the broker did not reply in time.
            RouteNotFound, ClosedError: as for `send`.
        """
        _, sender = self._joined()
        check_topic(topic)
        return await sender.recall(topic, handle, self._deadline(timeout_ms))

    async def request(self, message: Message, *, timeout_ms: float = 3_000) -> Message:
        """Sends a request message, and waits for the reply that its consumer sends with `reply`.

        Args:
            message: the request.
            timeout_ms: limit for sending, consuming and replying together; 3 s by default.

        Raises:
            CallTimeout: the request was sent, and nobody replied in time. It may be consumed
                nevertheless.
            UsageError, RouteNotFound, SendFailed, ReplyError, ClosedError: as for `send`.
        """
        if self._spans is not None and wants_span(message):
            return await self._spans.send(
                partial(Producer.request, self), message, timeout_ms=timeout_ms
            )
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
            request: the consumed message.
            body: body of the reply.
            properties: user properties of the reply.

        Raises:
            UsageError: the message requests no reply, or the reply is invalid.
            SendFailed: the broker could not be reached, or could not reach the requester.
            RouteNotFound, ReplyError, ClosedError: as for `send`.
        """
        session, _ = self._joined()
        return await Responder(session, self.group).reply(request, body, properties=properties)

    async def queues(self, topic: str) -> list[QueueId]:
        """Returns the topic's writable queues, sorted.

        For a topic that a send will create, these are the queues that it will have.

        Raises:
            RouteNotFound, SendFailed, ClosedError: as for `send`.
        """
        _, sender = self._joined()
        check_topic(topic)
        return list((await sender.route(topic, self._deadline(None))).writable)

    def _joined(self) -> tuple[Session, MessageSender]:
        if self._session is None or self._sender is None:
            raise ClosedError("the producer is not started, or is closed")
        self._session.check_loop()
        return self._session, self._sender

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        if timeout_ms is None:
            timeout_ms = self.config.send_timeout_ms
        else:
            timeout_ms = milliseconds("timeout_ms", timeout_ms)
        return Deadline(self._clock() + timeout_ms / 1000)
