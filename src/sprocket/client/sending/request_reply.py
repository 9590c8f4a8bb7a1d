"""Requests and replies over messages.

A request is an ordinary message with three properties more: the client id of its sender
(REPLY_TO_CLIENT), a correlation id (CORRELATION_ID) and how long the sender waits (TTL, in ms). The
consumer sends the reply to the reply topic of its cluster, and the broker pushes it to the sender's
connection (326).

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
#: The producer group of the replies that consumers send, as in Java clients.
INNER_GROUP = "CLIENT_INNER_PRODUCER"


class RequestReply:
    """Sends requests for one producer and waits for the replies.

    Args:
        session: connections and pending replies.
        sender: sends the request messages.
    """

    def __init__(self, session: Session, sender: MessageSender) -> None:
        self._session = session
        self._sender = sender
        #: Whether all known brokers have received a heartbeat since this producer started.
        self._is_announced = False

    # The future is registered before the message is sent, since the reply may arrive before the
    # send has returned. It is removed in every case, so that a timeout leaves nothing in memory.
    async def ask(self, envelope: Envelope, *, timeout_ms: float, deadline: Deadline) -> Message:
        """Sends a request and waits for its reply.

        Raises:
            CallTimeout: the request was sent, and nobody replied in time.
            SprocketError: as for a send.
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

    # A broker pushes a reply to the connection that it knows for the client id. The consumer may
    # reply through any broker of the topic, so all of them need our heartbeat before the request.
    async def _announce(self, topic: str, deadline: Deadline) -> None:
        """Makes sure that the topic's brokers have our heartbeat, so that they can push replies."""
        route = await self._sender.route(topic, deadline)
        session = self._session
        if not self._is_announced:
            self._is_announced = await session.heartbeat()
        found = (session.routes.address(broker) for broker in sorted(route.addresses))
        strangers = [each for each in found if each and session.greeted(each) is None]
        results = await asyncio.gather(
            *(session.register(address) for address in strangers), return_exceptions=True
        )
        for address, result in zip(strangers, results, strict=True):
            if isinstance(result, SprocketError):
                logger.info("a reply through %s will not reach us: %s", address, result)
            elif isinstance(result, BaseException):
                raise result


class Responder:
    """Sends replies to request messages.

    Args:
        session: connections and routes.
        group: the producer group of the replies.
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
        """Sends a reply, if possible through the request's broker, which knows the requester.

        Args:
            properties: user properties of the reply.
            timeout_ms: for the send; 3 s by default.

        Raises:
            UsageError: the message requests no reply, or the reply cannot be sent.
            SendFailed: the broker could not be reached, or could not reach the requester.
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
        return (await self._sender.send(envelope, deadline, queue))[0]


def topic_of_reply(request: StoredMessage) -> str:
    """Returns the topic for the reply to a request.

    Raises:
        UsageError: the message requests no reply.
    """
    if not isinstance(request, StoredMessage):
        raise UsageError(f"reply takes a consumed message, not {type(request).__name__}")
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
