"""Gets an envelope to a broker: chooses queues, tries again, reads the answer.

A send that failed goes to another broker at once; if there is no other, to the same after a
pause. All attempts together have the time of the one deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ReplyError,
    RouteNotFound,
    SendFailed,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.client.base.arguments import check_takes
from sprocket.client.config import ProducerConfig
from sprocket.client.session.session import Session
from sprocket.clientcore.attempts import Attempts
from sprocket.clientcore.envelope import Envelope
from sprocket.clientcore.queue_choice import SLOW, Faults, QueueChooser, by_key
from sprocket.clientcore.replies import SendStatus, send_status
from sprocket.clientcore.routes import TopicRoute
from sprocket.message.message import Message
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.recall import RecallHandle
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import RecallMessage, RecallReply, SendMessageV2, SendReply
from sprocket.protocol.sending import SendForm

#: Chooses one of the topic's queues for a message.
QueueSelector = Callable[[Sequence[QueueId], Message], QueueId]

#: Seconds before a broker that just failed is tried again, when there is no other.
_PAUSE_FIRST = 0.05
_PAUSE_LONGEST = 1.0
#: Seconds that asking for a newer route may take out of a send's time.
_ROUTE_SECONDS = 0.5


class Sent(NamedTuple):
    """Where a message is stored.

    Attributes:
        queue: the queue it lies in.
        queue_offset: its index there.
        message_id: the unique id that this producer gave it.
        offset_id: the id that the broker gave it: its address and place in the log.
        status: `SendStatus.OK`, or what the broker could not do in time after storing it.
        recall_handle: by it a message that waits for its time can be taken back; else None.
    """

    queue: QueueId
    queue_offset: QueueOffset
    message_id: str
    offset_id: str
    status: SendStatus
    recall_handle: str | None = None


class MessageSender:
    """Sends for one producer group.

    Args:
        session: connections and routes.
        group: the producer group.
        config: retries, and what brokers are told of topics to be made.
    """

    def __init__(self, session: Session, group: str, config: ProducerConfig) -> None:
        self._session = session
        self._group = group
        self._config = config
        self._clock = asyncio.get_running_loop().time
        self._faults = Faults() if config.avoid_faults else None
        self._chooser = QueueChooser(session.world.entropy.below(1 << 16), self._faults)
        #: By queue, what sends to it have in common.
        self._forms: dict[QueueId, SendForm] = {}

    async def route(self, topic: str, deadline: Deadline) -> TopicRoute:
        """The topic's route, or the one that it will have once a send has made it.

        Raises:
            RouteNotFound: the topic does not exist and is not made, or takes no messages.
            SendFailed: no name server answered in time.
        """
        route = self._session.routes.known(topic)
        if route is None:
            try:
                route = await self._session.routes.for_sending(
                    topic, self._config.new_topic_queues, deadline
                )
            except TransportError as error:
                raise SendFailed(str(error)) from error
        if not route.writable:
            raise RouteNotFound(f"no broker takes messages of topic {topic!r} now")
        return route

    async def send(self, envelope: Envelope, deadline: Deadline) -> list[Sent]:
        """Sends to the queue whose turn it is; on failure to another broker's.

        Raises:
            SendFailed: no attempt succeeded in time.
            ReplyError: a broker refused, and others would too.
            RouteNotFound: as `route`.
        """
        attempts: Attempts | None = None  # made at the first failure: most sends have none
        failure: SprocketError | None = None
        while True:
            route = self._session.routes.known(envelope.topic)
            if route is None or not route.writable:
                route = await self.route(envelope.topic, deadline)
            failed_at = "" if attempts is None else attempts.failed_at
            queue = self._chooser.next(route.writable, self._clock(), not_at=failed_at)
            if attempts is not None:
                if (pause := attempts.pause(queue.broker)) > 0:
                    await asyncio.sleep(min(pause, deadline.left()))
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
                is_last = not attempts.another(error, queue.broker)
                if error.refresh_route:
                    await self._refresh(envelope.topic, deadline)
                if is_last:
                    break
        raise _failed(envelope, failure) from failure

    async def send_to(self, queue: QueueId, envelope: Envelope, deadline: Deadline) -> list[Sent]:
        """Sends to one queue and no other, once.

        Raises:
            SendFailed, ReplyError: as `send`.
        """
        began = self._clock()
        try:
            reply = await self._request(envelope, queue, deadline)
            return self._answered(reply, envelope, queue, began)
        except (TransportError, ReplyError) as error:
            self._note_failure(error, queue)
            if error.refresh_route:
                await self._refresh(envelope.topic, deadline)
            if not error.retriable:
                raise
            raise _failed(envelope, error) from error

    async def send_oneway(
        self, queue: QueueId | None, envelope: Envelope, deadline: Deadline
    ) -> None:
        """Sends without waiting for the broker's word.

        Raises:
            SendFailed: it did not even go out.
            RouteNotFound: as `route`.
        """
        if queue is None:
            route = await self.route(envelope.topic, deadline)
            queue = self._chooser.next(route.writable, self._clock())
        try:
            await self._session.pool.send_oneway(
                self._session.address(queue.broker),
                self._header(envelope, queue),
                body=envelope.body,
                deadline=deadline,
            )
        except TransportError as error:
            raise _failed(envelope, error) from error

    async def recall(self, topic: str, handle: str, deadline: Deadline) -> str:
        """Takes a message back at the broker that the handle names; its unique id.

        Raises:
            UsageError: that is no handle of the topic.
            ReplyError: the broker refused.
            TransportError, RouteNotFound: it could not be asked.
        """
        said = RecallHandle.parse(handle)
        if said.topic != topic:
            raise UsageError(f"the handle is for topic {said.topic!r}, not {topic!r}")
        await self.route(topic, deadline)
        header = RecallMessage(
            producer_group=self._group, topic=topic, recall_handle=handle, bname=said.broker
        )
        address = self._session.address(said.broker)
        reply = await self._session.pool.ask(address, header, deadline=deadline)
        return reply.read(RecallReply).msg_id or said.unique_key

    def _request(
        self, envelope: Envelope, queue: QueueId, deadline: Deadline
    ) -> Awaitable[Command]:
        """Sends to a queue; the broker's answer is to be awaited."""
        address = self._session.address(queue.broker)
        return self._posted(envelope, queue, address, deadline) or self._session.pool.call(
            address, self._header(envelope, queue), body=envelope.body, deadline=deadline
        )

    def _answered(
        self, reply: Command, envelope: Envelope, queue: QueueId, began: float
    ) -> list[Sent]:
        """What a broker's answer says, to a send that began at a moment of the loop's time."""
        status = send_status(reply)
        faults = self._faults
        if faults is not None:
            ended = self._clock()
            if faults.until or ended - began >= SLOW:
                faults.answered(queue.broker, ended - began, ended)
        return _sent(reply, envelope, queue, status)

    def _note_failure(self, error: TransportError | ReplyError, queue: QueueId) -> None:
        """Takes note that a send to a broker failed."""
        if self._faults is not None and error.retriable:
            self._faults.failed(queue.broker, self._clock())

    def _posted(
        self, envelope: Envelope, queue: QueueId, address: str, deadline: Deadline
    ) -> Awaitable[Command] | None:
        """Sends by the queue's form, if that can be done at once: so most sends go."""
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
        return Attempts(self._config.retries, waits)

    async def _refresh(self, topic: str, deadline: Deadline) -> None:
        """Asks for a newer route; without one the old one stays."""
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


def fixed_queue(
    route: TopicRoute,
    message: Message,
    *,
    key: str | int | None = None,
    queue: QueueId | None = None,
    selector: QueueSelector | None = None,
) -> QueueId:
    """The queue that the caller wishes, by exactly one of three ways.

    Raises:
        UsageError: more than one wish, or no queue of the topic that takes messages.
    """
    if (key is not None) + (queue is not None) + (selector is not None) != 1:
        raise UsageError("key, queue and queue_selector exclude each other")
    if key is not None:
        return by_key(route.writable, key)
    chosen = queue if selector is None else _selected(selector, route.writable, message)
    if chosen is None or chosen not in route.writable:
        raise UsageError(f"{chosen} is no queue of topic {message.topic!r} that takes messages")
    return chosen


def _selected(
    selector: QueueSelector, queues: Sequence[QueueId], message: Message
) -> QueueId | None:
    try:
        return selector(queues, message)
    except TypeError:  # its own, or it is none: to be looked at costs more than a send
        check_takes(selector, "queues", "message", what="a queue_selector")
        raise


def _failed(envelope: Envelope, failure: SprocketError | None) -> SendFailed:
    why = failure or CallTimeout("no time was left")
    return SendFailed(f"message {envelope.message_id} to {envelope.topic!r}: {why}")
