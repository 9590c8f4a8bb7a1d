"""Requests and replies over messages: what goes out with them, and who waits for which reply.

A request is an ordinary message that says who asks (REPLY_TO_CLIENT, the client id), under which
name (CORRELATION_ID) and how long it waits (TTL, in ms). Whoever consumes it sends the answer to
the reply topic of its cluster; the broker pushes it to the asker's connection (326).

Source: DefaultMQProducerImpl.request, MessageUtil, ClientRemotingProcessor of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, SprocketError, UsageError
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.sender import MessageSender, Sent
from sprocket.client.session.session import Session
from sprocket.clientcore.envelope import Envelope, seal
from sprocket.message.message import Message, StoredMessage
from sprocket.message.properties import (
    CLUSTER,
    CORRELATION_ID,
    MESSAGE_TYPE,
    REPLY_TO_CLIENT,
    REPLY_TTL,
    encode,
)
from sprocket.message.topic import reply_topic

logger = logging.getLogger(__name__)

_REPLY = "reply"
#: The producer group of replies that a consumer sends; Java clients use it too.
INNER_GROUP = "CLIENT_INNER_PRODUCER"


class RequestReply:
    """Asks for one producer.

    Args:
        session: connections, and replies that come.
        sender: sends the requests.
    """

    def __init__(self, session: Session, sender: MessageSender) -> None:
        self._session = session
        self._sender = sender
        #: Whether brokers that are known were told of this producer since it began.
        self._is_announced = False

    async def ask(self, envelope: Envelope, *, timeout_ms: float, deadline: Deadline) -> Message:
        """Sends a request and waits for its reply.

        Raises:
            CallTimeout: it was sent, and nobody replied in time.
            SprocketError: as `MessageSender.send`.
        """
        session = self._session
        await self._announce(envelope.topic, deadline)
        name = session.world.entropy.token(16).hex()
        asks = {
            CORRELATION_ID: name,
            REPLY_TO_CLIENT: session.client_id,
            REPLY_TTL: str(max(1, int(timeout_ms))),
        }
        request = envelope._replace(properties=envelope.properties + encode(asks))
        waiting = session.replies.expect(name)
        try:
            await self._sender.send(request, deadline)
            await asyncio.wait([waiting], timeout=deadline.left())
            if not waiting.done():
                raise CallTimeout(
                    f"request {envelope.message_id} to {envelope.topic!r} was sent, and nobody "
                    f"replied within {timeout_ms:g} ms"
                )
            return waiting.result()
        finally:
            session.replies.forget(name)

    async def _announce(self, topic: str, deadline: Deadline) -> None:
        """Has brokers know us before they are to push replies to us."""
        route = await self._sender.route(topic, deadline)
        session = self._session
        if not self._is_announced:
            self._is_announced = await session.heartbeat()
        for broker in sorted(route.addresses):
            address = session.routes.address(broker)
            if address is None or session.greeted(address) is not None:
                continue
            try:
                await session.register(address)
            except SprocketError as error:
                logger.info("a reply through %s will not reach us: %s", address, error)


class Responder:
    """Sends replies.

    Args:
        session: connections and routes.
        group: the producer group that brokers are told.
    """

    def __init__(self, session: Session, group: str = INNER_GROUP) -> None:
        self._session = session
        self._config = ProducerConfig()
        self._sender = MessageSender(session, group, self._config)

    async def reply(
        self,
        request: StoredMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> Sent:
        """Replies, if possible through the broker that the request came by: it knows the asker.

        Raises:
            UsageError: the message asks for no reply, or the reply cannot be sent.
            SendFailed: the broker could not be reached, or could not reach the asker.
            RouteNotFound, ReplyError: as for a send.
        """
        now_ms = self._session.world.clock.now_ms()
        message = Message(topic_of_reply(request), body, properties=properties or {})
        sealed = seal(message, self._session.ids, now_ms, self._config)
        envelope = sealed._replace(
            properties=sealed.properties + encode(_answers(request)), is_reply=True
        )
        if timeout_ms is None:
            timeout_ms = self._config.send_timeout_ms
        deadline = Deadline.after_ms(timeout_ms)
        route = await self._sender.route(message.topic, deadline)
        near = [queue for queue in route.writable if queue.broker == request.queue.broker]
        queue = near[0] if near else route.writable[0]
        return (await self._sender.send_to(queue, envelope, deadline))[0]


def topic_of_reply(request: StoredMessage) -> str:
    """Where the reply to a request goes.

    Raises:
        UsageError: the message asks for no reply.
    """
    if not isinstance(request, StoredMessage):
        raise UsageError(f"a consumed message is replied to, not {type(request).__name__}")
    cluster = request.properties.get(CLUSTER)
    if not cluster or not request.properties.get(REPLY_TO_CLIENT):
        raise UsageError("the message asks for no reply: it was not sent by `request`")
    return reply_topic(cluster)


def _answers(request: StoredMessage) -> dict[str, str]:
    given = {
        name: request.properties.get(name, "")
        for name in (CORRELATION_ID, REPLY_TO_CLIENT, REPLY_TTL)
    }
    return {MESSAGE_TYPE: _REPLY, **{name: value for name, value in given.items() if value}}
