"""Sends an envelope to a broker: chooses the queue, retries, reads the reply.

A failed send is repeated at another broker at once; if there is no other, at the same one after a
pause. One deadline limits all attempts together.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import NamedTuple

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    ReplyError,
    RouteNotFound,
    SendFailed,
    SprocketError,
    TopicNotFound,
    TransportError,
    UsageError,
)
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.fixed_queue import QueueNotFound, QueueSelector, fixed_queue
from sprocket.client.session.session import Session
from sprocket.clientcore.attempts import Attempts
from sprocket.clientcore.envelope import Envelope
from sprocket.clientcore.queue_choice import SLOW, Faults, QueueChooser
from sprocket.clientcore.replies import SendStatus, send_status
from sprocket.clientcore.routes import TopicRoute
from sprocket.message.message import Message
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.recall import RecallHandle
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import RecallMessage, RecallReply, SendMessageV2, SendReply
from sprocket.protocol.sending import SendForm

#: Seconds before the next attempt at a broker that has failed: the first pause and the longest.
_PAUSE_FIRST = 0.05
_PAUSE_LONGEST = 1.0
#: Seconds that fetching a newer route may take of a send's time.
_ROUTE_SECONDS = 0.5


class Sent(NamedTuple):
    """The result of a send: where the broker stored the message.

    Attributes:
        queue: the queue that contains it.
        queue_offset: its offset in the queue.
        message_id: the unique id from this producer.
        offset_id: the id from the broker: the broker's address and the offset in its log.
        status: `SendStatus.OK`, or what the broker could not do in time after it stored the
            message.
        recall_handle: for a delayed message that can be recalled, the handle that `recall` takes;
            else None.
    """

    queue: QueueId
    queue_offset: QueueOffset
    message_id: str
    offset_id: str
    status: SendStatus
    recall_handle: str | None = None


class MessageSender:
    """Sends envelopes for one producer group.

    Args:
        session: connections and routes.
        group: the producer group.
        config: the retries, and how many queues a new topic gets.
    """

    def __init__(self, session: Session, group: str, config: ProducerConfig) -> None:
        self._session = session
        self._group = group
        self._config = config
        self._clock = asyncio.get_running_loop().time
        self._faults = Faults() if config.avoid_faults else None
        self._chooser = QueueChooser(session.world.entropy.below(1 << 16), self._faults)
        #: By queue, the part of the request that all sends to it have in common.
        self._forms: dict[QueueId, SendForm] = {}

    async def route(self, topic: str, deadline: Deadline) -> TopicRoute:
        """Returns the topic's route, or the one that it will have once a send has created it.

        Raises:
            RouteNotFound: the topic does not exist and is not created automatically, or no broker
                accepts messages for it.
            SendFailed: no name server answered in time.
        """
        # While a master is away, its slaves keep the topic's route alive. Such a route is worth
        # nothing to a sender, and the next one may be there: it is asked for with each send, and if
        # another master may come, it is waited for.
        route = self._session.routes.known(topic)
        if route is not None and not route.writable:
            await self._refresh(topic, deadline)
            route = await self._headed(topic, deadline)
        if route is None:
            try:
                route = await self._session.routes.for_sending(
                    topic, self._config.new_topic_queues, deadline
                )
            except TransportError as error:
                raise SendFailed(str(error)) from error
        if not route.writable and route.headless:
            route = await self._headed(topic, deadline) or route
        if not route.writable:
            raise RouteNotFound(f"no broker takes messages of topic {topic!r} now")
        return route

    async def _headed(self, topic: str, deadline: Deadline) -> TopicRoute | None:
        """The topic's known route, once a broker that lost its master has another one."""
        routes = self._session.routes
        route = routes.known(topic)
        while route is not None and not route.writable and route.headless and self._config.retries:
            broker = route.headless[0].place
            self._session.search.suspect(broker, topic)
            pause = deadline.sooner(_PAUSE_LONGEST)
            await routes.moves.reach(routes.moves.value + 1, pause)
            if not deadline.left():
                break
            route = routes.known(topic)
        return route

    async def fixed(
        self,
        message: Message,
        deadline: Deadline,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        selector: QueueSelector | None = None,
    ) -> QueueId:
        """The queue that the caller wishes, by exactly one of three ways.

        A route that is at hand may be older than the queue: before one is refused, name servers are
        asked once more.

        Raises:
            UsageError: more than one wish, or no queue of the topic that takes messages.
            RouteNotFound, SendFailed: as `route`.
        """
        known = self._session.routes.known(message.topic)
        try:
            route = await self.route(message.topic, deadline)
            return fixed_queue(route, message, key=key, queue=queue, selector=selector)
        except (QueueNotFound, RouteNotFound):
            if known is None:  # it was asked for just now
                raise
        await self._refresh(message.topic, deadline)
        route = await self.route(message.topic, deadline)
        return fixed_queue(route, message, key=key, queue=queue, selector=selector)

    # Most sends succeed at once, so the loop takes the route from the cache and creates nothing for
    # retries until an attempt has failed. One coroutine less, and no calls that most
    # sends do not need, made a send cost 12.4 µs besides the network, where it was 13.5 µs. The
    # route is read again for each attempt, because a failure may have refreshed it.
    async def send(
        self, envelope: Envelope, deadline: Deadline, fixed: QueueId | None = None
    ) -> list[Sent]:
        """Sends to the next queue in round robin; after a failure to a queue of another broker.

        If there is no other broker, or with a fixed queue, it is sent to the same one again, as
        soon as the broker has another master or after a pause.

        Args:
            fixed: the queue to which alone it is sent.

        Raises:
            SendFailed: no attempt succeeded in time.
            ReplyError: a broker refused for a reason that other brokers share.
            RouteNotFound: as `route`.
        """
        attempts: Attempts | None = None
        failure: SprocketError | None = None
        while True:
            if fixed is None:
                route = self._session.routes.known(envelope.topic)
                if route is None or not route.writable:
                    route = await self.route(envelope.topic, deadline)
                failed_at = "" if attempts is None else attempts.failed_at
                queue = self._chooser.next(route.writable, self._clock(), not_at=failed_at)
            else:
                queue = fixed
            if attempts is not None:
                await self._pause(attempts, queue, deadline)
                if not deadline.left():
                    break
            began = self._clock()
            try:
                reply = await self._request(envelope, queue, deadline)
                return self._answered(reply, envelope, queue, began)
            except (TransportError, ReplyError) as error:
                self._note_failure(error, queue)
                if not error.retriable:
                    raise
                failure = error
                attempts = attempts or self._attempts()
                is_last = not attempts.another(error, queue.place)
                if isinstance(error, TopicNotFound):
                    await self._refresh(envelope.topic, deadline)
                if is_last:
                    break
        raise _failed(envelope, failure) from failure

    async def _pause(self, attempts: Attempts, queue: QueueId, deadline: Deadline) -> None:
        """Waits before the next attempt, unless the broker has another master meanwhile."""
        if (seconds := attempts.pause(queue.place)) > 0:
            routes = self._session.routes
            known = routes.address(queue.place)
            await routes.moved(queue.place, known, deadline.sooner(seconds))

    async def send_oneway(
        self, queue: QueueId | None, envelope: Envelope, deadline: Deadline
    ) -> None:
        """Sends without a reply from the broker.

        Raises:
            SendFailed: the message could not be written to a connection.
            RouteNotFound: as `route`.
        """
        fixed, attempts = queue, self._attempts()
        while True:
            if fixed is None:
                route = await self.route(envelope.topic, deadline)
                queue = self._chooser.next(route.writable, self._clock(), not_at=attempts.failed_at)
            assert queue is not None
            try:
                await self._session.pool.send_oneway(
                    self._session.address_of(queue),
                    self._header(envelope, queue),
                    body=envelope.body,
                    deadline=deadline,
                )
                return
            except TransportError as error:
                self._note_failure(error, queue)
                if not attempts.another(error, queue.place) or not deadline.left():
                    raise _failed(envelope, error) from error
            await self._pause(attempts, queue, deadline)

    async def recall(self, topic: str, handle: str, deadline: Deadline) -> str:
        """Recalls a delayed message at the broker that the handle names; returns its unique id.

        Raises:
            UsageError: the handle is invalid or belongs to another topic.
            ReplyError: the broker refused.
            TransportError, RouteNotFound: the broker could not be reached.
        """
        parsed = RecallHandle.parse(handle)
        if parsed.topic != topic:
            raise UsageError(f"the handle is for topic {parsed.topic!r}, not {topic!r}")
        await self.route(topic, deadline)
        header = RecallMessage(
            producer_group=self._group, topic=topic, recall_handle=handle, bname=parsed.broker
        )
        session = self._session
        reply = await session.search.call(
            parsed.broker,
            topic,
            lambda address: session.pool.ask(address, header, deadline=deadline),
            deadline,
        )
        return reply.read(RecallReply).msg_id or parsed.unique_key

    def _request(
        self, envelope: Envelope, queue: QueueId, deadline: Deadline
    ) -> Awaitable[Command]:
        """Sends to a queue; returns the broker's reply as an awaitable."""
        address = self._session.address_of(queue)
        return self._posted(envelope, queue, address, deadline) or self._session.pool.call(
            address, self._header(envelope, queue), body=envelope.body, deadline=deadline
        )

    def _answered(
        self, reply: Command, envelope: Envelope, queue: QueueId, began: float
    ) -> list[Sent]:
        """Returns the results that a reply contains, and records how long the broker took.

        Args:
            began: when the send began, on the loop's clock.
        """
        status = send_status(reply)
        faults = self._faults
        if faults is not None:
            ended = self._clock()
            if faults.until or ended - began >= SLOW:
                faults.answered(queue.broker, ended - began, ended)
        return _sent(reply, envelope, queue, status)

    def _note_failure(self, error: TransportError | ReplyError, queue: QueueId) -> None:
        """Records that a send to a broker failed."""
        self._session.search.failed(queue.place, error, queue.topic)
        if isinstance(error, ConnectFailed):
            address = self._session.routes.address(queue.place)
            self._session.reachability.failed(f"broker {address or queue.broker}", error)
        if self._faults is not None and error.retriable:
            self._faults.failed(queue.place, self._clock())

    # The fast path. Most header fields are equal for all sends to a queue. They are encoded once,
    # into a form, and a send fills in the rest: 13.2 µs a send besides the network,
    # where it was 18.4 µs (128 B and 1 KiB, 256 in flight). It never waits, so it needs an open
    # connection that takes one more call, and headers that are plain JSON without a signature.
    def _posted(
        self, envelope: Envelope, queue: QueueId, address: str, deadline: Deadline
    ) -> Awaitable[Command] | None:
        """Sends by the queue's form if that is possible without waiting, else returns None."""
        peer = self._session.pool.connected(address)
        if peer is None or not envelope.is_plain or not self._session.is_plain:
            return None
        number = peer.number_of_call()
        if number is None or deadline.at <= self._clock():
            return None
        form = self._forms.get(queue)
        if form is None:
            form = self._forms[queue] = SendForm(self._header(envelope, queue))
        head = form.head(number, envelope, len(envelope.body))
        return peer.call_written(number, head, envelope.body, deadline)

    def _attempts(self) -> Attempts:
        entropy = self._session.world.entropy
        waits = pauses(_PAUSE_FIRST, _PAUSE_LONGEST, entropy=entropy)
        return Attempts(self._config.retries, waits, has_deadline=True)

    async def _refresh(self, topic: str, deadline: Deadline) -> None:
        """Fetches a newer route; if that fails, the old one stays."""
        with contextlib.suppress(TransportError, RouteNotFound):
            await self._session.routes.fetch(topic, deadline.sooner(_ROUTE_SECONDS))

    def _header(self, envelope: Envelope, queue: QueueId) -> SendMessageV2:
        return envelope.header(
            queue, group=self._group, new_topic_queues=self._config.new_topic_queues
        )


def _sent(reply: Command, envelope: Envelope, queue: QueueId, status: SendStatus) -> list[Sent]:
    fields = reply.read(SendReply)
    if fields.queue_id != queue.number:
        queue = queue._replace(number=fields.queue_id)
    first = fields.queue_offset
    if not envelope.parts:
        sent = Sent(queue, QueueOffset(first), envelope.message_id, fields.msg_id, status)
        return [sent._replace(recall_handle=fields.recall_handle) if fields.recall_handle else sent]
    offset_ids = fields.msg_id.split(",")
    offset_ids += [""] * (len(envelope.parts) - len(offset_ids))
    return [
        Sent(queue, QueueOffset(first + place), message_id, offset_ids[place], status)
        for place, message_id in enumerate(envelope.parts)
    ]


def _failed(envelope: Envelope, failure: SprocketError | None) -> SendFailed:
    why = failure or CallTimeout("the deadline has passed")
    return SendFailed(f"message {envelope.message_id} to {envelope.topic!r}: {why}")
