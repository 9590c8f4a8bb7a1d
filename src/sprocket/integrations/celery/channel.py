"""A channel of kombu on the task queues and the mail of its process.

A queue that outlives its consumers is a topic. One that is exclusive or deleted by itself is a mail
box in this process: replies to remote control, results of `rpc://`, the commands for a worker,
events. Fanout exchanges are mail addresses. A message to another exchange goes to the queues that
are bound here, and by mail to whoever has a box bound to it, if no queue takes it.
"""

from __future__ import annotations

import itertools
import logging
import re
import weakref
from functools import partial
from queue import Empty
from typing import Any, ClassVar

from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.transport.virtual import exchange as exchanges

from sprocket.base.errors import SprocketError
from sprocket.integrations.celery.channel_messages import ChannelMessages, Delivered
from sprocket.integrations.celery.messages import (
    body_of,
    due_of,
    expiry_of,
    message_of,
    priority_of,
)
from sprocket.integrations.celery.station import BlockingStation
from sprocket.integrations.queues.mail import ANY_KEY, MailBox
from sprocket.integrations.queues.options import check_max_priority
from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)

_MAX_PRIORITY = "x-max-priority"
#: Numbers of channels; that of a channel which is gone is not used again.
_numbers = itertools.count(1)


class DirectPublishing(exchanges.DirectExchange):
    """Messages to queues bound with the very key."""

    def deliver(self, message: dict[str, Any], exchange: str, routing_key: str, **_: Any) -> None:
        """Sends a message."""
        self.channel.route(exchange, routing_key, message)


class TopicPublishing(exchanges.TopicExchange):
    """Messages to queues bound with a pattern that the key matches."""

    def deliver(self, message: dict[str, Any], exchange: str, routing_key: str, **_: Any) -> None:
        """Sends a message."""
        self.channel.route(exchange, routing_key, message)


class FanoutPublishing(exchanges.FanoutExchange):
    """Messages to all that are bound."""

    def deliver(self, message: dict[str, Any], exchange: str, routing_key: str, **_: Any) -> None:
        """Sends a message."""
        self.channel.route(exchange, routing_key, message, is_for_all=True)


class UnsettledMessages(virtual.QoS):
    """The messages of a channel that are not acknowledged; settling one frees its place."""

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        # Kombu's would keep the channel, and its connection, until Python exits.
        self._on_collect.cancel()

    def append(self, message: Any, delivery_tag: str) -> None:
        """Counts a message as delivered."""
        super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Acknowledges a message; it does not wait for the broker."""
        super().ack(delivery_tag)
        self.channel.settle(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Gives a message back, or makes it a dead letter."""
        self._quick_ack(delivery_tag)
        self.channel.settle(delivery_tag, requeue=requeue, is_done=False)

    def restore_unacked(self) -> list[Any]:
        """Gives back all that is not acknowledged."""
        self._flush()
        tags = list(self._delivered)
        self._delivered.clear()
        self.channel.give_back(tags)
        return []


class Channel(virtual.Channel):
    """A channel. It is used by one thread at a time, as kombu has it; any may acknowledge.

    The station does not keep it: one that nobody uses any more and nobody closed gives back what it
    holds.
    """

    QoS = UnsettledMessages
    supports_fanout = True
    exchange_types: ClassVar[dict[str, Any]] = {
        "direct": DirectPublishing,
        "topic": TopicPublishing,
        "fanout": FanoutPublishing,
    }

    def __init__(self, connection: Any, **named: Any) -> None:
        super().__init__(connection, **named)
        self._station: BlockingStation = connection.station
        self._number = next(_numbers)
        self._mail_queues: dict[str, bool] = {}
        #: The boxes of the mail queues that are consumed.
        self._boxes: dict[str, MailBox] = {}
        self._held = ChannelMessages()
        self._unacknowledged: set[str] = set()
        self._drop = weakref.finalize(self, self._station.drop, self._number, self._held)
        self._drop.atexit = False  # when Python exits, the station closes by itself

    # Declarations

    def prepare_queue_arguments(self, arguments: Any, **named: Any) -> Any:
        """A queue's settings by AMQP's names; of these only `x-max-priority` is read."""
        return to_rabbitmq_queue_arguments(arguments, **named)

    def _new_queue(self, queue: str, **named: Any) -> None:
        is_mail = bool(named.get("exclusive") or named.get("auto_delete"))
        max_priority = check_max_priority((named.get("arguments") or {}).get(_MAX_PRIORITY, 0))
        self._mail_queues[queue] = is_mail
        self._station.declare(queue, is_mail, max_priority)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return self._station.has(queue)

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Any = None,
        **named: Any,
    ) -> None:
        """Binds a queue; a mail box gets what is sent to the exchange from anywhere."""
        super().queue_bind(queue, exchange, routing_key, arguments, **named)
        if not self._mail_queues.get(queue):
            return
        exchange = exchange or "amq.direct"
        kind = self.typeof(exchange)
        _, pattern, _ = kind.prepare_bind(queue, exchange, routing_key, arguments)
        if kind.type == "direct":
            pattern = re.escape(routing_key or "")
        self._station.open_box(queue, f"exchange {exchange}", pattern or ANY_KEY)

    def _queue_bind(self, *_: Any) -> None:
        """All is done in `queue_bind`, which runs also where this is skipped."""

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        if self._mail_queues.get(queue):
            self._station.close_box(queue)
        else:
            self._station.purge(queue)

    def after_reply_message_received(self, queue: str) -> None:
        """Keeps a reply queue: it ends with its last consumer."""

    # Sending

    def route(
        self, exchange: str, key: str, message: dict[str, Any], *, is_for_all: bool = False
    ) -> None:
        """Sends a message to the queues and the boxes that an exchange has for a key."""
        try:
            table = self.get_table(exchange)
        except KeyError:
            table = []
        bound = self.typeof(exchange).lookup(table, exchange, key, None)
        durable = [queue for queue in bound if queue and not self._mail_queues.get(queue)]
        for queue in durable:
            self._put(queue, message)
        if is_for_all or len(durable) < len(bound) or not durable:
            self._station.post(f"exchange {exchange}", key or "", body_of(message))

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        is_delayed = self.connection.settings.delays_at_broker
        due_ms = due_of(message) if is_delayed else None
        self._station.put(queue, body_of(message), due_ms, priority_of(message))

    # Receiving

    def credit(self) -> int:
        """How many more messages this channel may have. Called on the loop's thread."""
        limit = int(self.qos.prefetch_count)
        if not limit:
            return POP_COUNT_MAX
        unsettled = len(self.qos._delivered) - len(self.qos._dirty)
        return max(0, limit - unsettled - len(self._held.arrived))

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **named: Any
    ) -> None:
        """Has a queue's messages delivered."""
        super().basic_consume(queue, no_ack, callback, consumer_tag, **named)
        if no_ack:
            self._unacknowledged.add(queue)
        here = weakref.ref(self)
        box = self._station.attach(
            self._number,
            queue,
            partial(_credit, here),
            partial(_arrive, here, self._held, queue),
            partial(_ring, here),
        )
        if box is not None:
            self._boxes[queue] = box

    def basic_cancel(self, consumer_tag: str) -> None:
        """Ends that. What has arrived and was not delivered goes back."""
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is None:
            return
        self._unacknowledged.discard(queue)
        self._boxes.pop(queue, None)
        is_over = self._station.detach(self._number, queue)
        if kept := self._held.take_back(queue):
            self._station.give_back(kept)
        if is_over:
            self.queue_delete(queue)
            self._station.close_box(queue)

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        """Sets how many unsettled messages the channel may have."""
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self._station.wake(self._number)

    def deliver_next(self) -> bool:
        """Delivers what has arrived and may be delivered now, one message at most.

        Raises:
            SprocketError: a broker refuses for good.
        """
        for _ in range(len(self._held.arrived)):
            each = self._held.arrived.popleft()
            if isinstance(each.what, SprocketError):
                raise each.what
            if not self._may_have_of(each.queue):
                self._held.arrived.append(each)
            elif self._deliver(each.queue, each.what):
                return True
        for queue, box in self._boxes.items():
            while self._may_have_of(queue) and (message := box.take()) is not None:
                if self._deliver(queue, message, box):
                    return True
        return False

    def _may_have_of(self, queue: str) -> bool:
        return queue in self._unacknowledged or bool(self.qos.can_consume())

    def _deliver(self, queue: str, message: StoredMessage, box: MailBox | None = None) -> bool:
        """Delivers a message to the queue's consumer, if it can have it."""
        callback = self.connection._callbacks.get(queue)
        payload = self._payload(message, box)
        if payload is None or callback is None:
            return False
        if queue in self._unacknowledged:
            self.settle(payload["properties"]["delivery_tag"])
        callback(payload)
        return True

    def _payload(self, message: StoredMessage, box: MailBox | None) -> dict[str, Any] | None:
        """A message as kombu has it; None if it is none of kombu's, or has expired."""
        tag = self._next_delivery_tag()
        popped = message if isinstance(message, PoppedMessage) else None
        try:
            payload = message_of(message.body, tag, message.reconsume_times)
        except ValueError as error:
            logger.error("message %s of %s is a dead letter: %s",
                         message.message_id, message.topic, error)  # fmt: skip
            if popped is not None:
                self._station.reject(self._number, popped, False)
            return None
        expires_ms = expiry_of(payload, message.born_ms)
        if expires_ms is not None and expires_ms <= self._station.now_ms():
            if popped is not None:
                self._station.ack(self._number, popped)
            return None
        if popped is not None:
            self._held.leases[tag] = popped
        elif box is not None:
            self._held.mail[tag] = (message, box)
        return payload

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        while True:
            message, box = self._station.get(queue)
            if message is None:
                raise Empty
            if (payload := self._payload(message, box)) is not None:
                return payload

    def basic_get(self, queue: str, no_ack: bool = False, **named: Any) -> Any:
        """Receives one message, if there is one."""
        message = super().basic_get(queue, no_ack, **named)
        if message is not None and no_ack:
            self.settle(message.delivery_tag)
        return message

    # Settling

    def settle(self, tag: str, *, requeue: bool = False, is_done: bool = True) -> None:
        """Acknowledges, gives back or rejects a message; it does not wait for the broker."""
        message = self._held.leases.pop(tag, None)
        if message is None:
            letter, box = self._held.mail.pop(tag, (None, None))
            if requeue and letter is not None and box is not None:
                box.put_back(letter)
            self._station.wake(self._number)
        elif is_done:
            self._station.ack(self._number, message)
        else:
            self._station.reject(self._number, message, requeue)
        is_more = self._held.arrived or any(len(box) for box in self._boxes.values())
        if is_more and (connection := self.connection) is not None:
            connection.ring()

    def give_back(self, tags: list[str]) -> None:
        """Gives messages back at once, and waits for that."""
        for tag in reversed(tags):
            if tag in self._held.mail:
                self.settle(tag, requeue=True, is_done=False)
        messages = [self._held.leases.pop(tag) for tag in tags if tag in self._held.leases]
        self._station.give_back(messages)

    def _size(self, queue: str) -> int:
        return self._station.count(queue)

    def _purge(self, queue: str) -> int:
        return self._station.purge(queue)

    # The end

    def close(self) -> None:
        """Closes the channel: consumers end, and what is not acknowledged goes back."""
        try:
            super().close()
        finally:
            self.drop()

    def drop(self) -> None:
        """Gives back all that is left, and waits for nothing."""
        self._drop()


def _credit(here: weakref.ref[Channel]) -> int:
    """How many more messages a channel may have; none if it is gone."""
    channel = here()
    return 0 if channel is None else channel.credit()


def _arrive(
    here: weakref.ref[Channel],
    held: ChannelMessages,
    queue: str,
    what: StoredMessage | SprocketError,
) -> None:
    """Adds what arrived for a channel, and tells its connection."""
    held.arrived.append(Delivered(queue, what))
    _ring(here)


def _ring(here: weakref.ref[Channel]) -> None:
    """Tells a channel's connection that there is something to deliver."""
    channel = here()
    if channel is not None and (connection := channel.connection) is not None:
        connection.ring()
