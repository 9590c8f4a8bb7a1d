"""Sends messages that failed back to their broker, which delivers them again later.

The message is sent back by its log offset (request 36). If this fails, it is sent as a new message
to the group's retry topic, through any broker. If this fails too, the caller keeps the message, and
the committed offset does not pass it.

A broker may refuse the message itself, whoever sends it and whenever: as illegal, say. Such a
message is delivered again by this member, as often as it would have been redelivered. Then it is
given up with an error in the log, so that its queue does not stand still for ever; it stays where
it is stored.

Source: DefaultMQPushConsumerImpl.sendMessageBack of RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from typing import Protocol

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ClosedError,
    IllegalMessage,
    InvalidParameter,
    LocalProtocolError,
    SprocketError,
    UsageError,
)
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.sender import MessageSender
from sprocket.client.session.session import Session
from sprocket.clientcore.envelope import Envelope
from sprocket.message.message import StoredMessage
from sprocket.message.properties import (
    DELAY,
    DELAY_LEVEL_MAX,
    HALF,
    ORIGIN_ID,
    RECONSUME_TIMES,
    RECONSUME_TIMES_MAX,
    RETRY_TOPIC,
    UNIQUE_KEY,
    encode,
)
from sprocket.message.topic import retry_topic
from sprocket.protocol.requests.send import SendBack

logger = logging.getLogger(__name__)

#: The producer group of these messages, as in Java clients.
_INNER_GROUP = "CLIENT_INNER_PRODUCER"
#: The delay level after the first failure; each further failure takes the next level.
_FIRST_LEVEL = 3
#: How often this member delivers a message again that brokers refuse, if nothing else is set.
_LOCAL_MAX = 16
#: Refusals of the message itself. One of the group or the broker passes once an operator wants it.
_FINAL = (IllegalMessage, InvalidParameter, LocalProtocolError, UsageError)


class RedeliveryPolicy(Protocol):
    """What happens to messages that failed."""

    async def give_back(self, message: StoredMessage, delay_level: int = 0) -> bool:
        """Disposes of a message; returns False if the consumer must keep it."""
        ...


class NoRedelivery:
    """Drops messages that failed, with a warning in the log; for broadcasting.

    A message that is sent back would be redelivered to one member, maybe not the one that failed.
    """

    async def give_back(self, message: StoredMessage, delay_level: int = 0) -> bool:
        """Logs and drops the message; returns True."""
        logger.warning(
            "%s at %d failed and is dropped: broadcasting has no redelivery",
            message.queue,
            message.queue_offset,
        )
        return True


class Redelivery:
    """Sends messages back for one consumer group.

    Args:
        session: connections and routes.
        group: the consumer group.
        reconsume_max: after so many redeliveries the broker makes the message a dead letter.
        timeout_ms: how long each of the two ways to send it back may take.
    """

    def __init__(
        self, session: Session, group: str, *, reconsume_max: int, timeout_ms: int
    ) -> None:
        self._session = session
        self._group = group
        self._reconsume_max = reconsume_max
        self._timeout_ms = timeout_ms
        self._sending = f"group {group}", "send failed messages back"
        self._sender = MessageSender(session, _INNER_GROUP, ProducerConfig(new_topic_queues=1))

    async def give_back(self, message: StoredMessage, delay_level: int = 0) -> bool:
        """Sends a message back; returns False if no broker has stored it, so it must be kept.

        True as well if it is given up, since brokers refused the message itself too often.

        Args:
            delay_level: 0: the delay grows with the number of failures; 1 to 18: a fixed delay;
                below 0: the message becomes a dead letter.
        """
        if not message.queue.is_logical:  # another broker may hold the message itself
            try:
                await self._send_back(message, delay_level)
            except SprocketError as error:
                logger.info("%s at %d: send back: %s", message.queue, message.queue_offset, error)
            else:
                return self._sent_back()
        try:
            await self._sender.send(self._as_new(message, delay_level), self._deadline())
        except SprocketError as error:
            logger.info("%s at %d is not sent back: %s", message.queue, message.queue_offset, error)
            self._session.reachability.refused(*self._sending, error)
            is_final = isinstance(error, _FINAL) and not isinstance(error, ClosedError)
            return is_final and self._given_up(message, delay_level, error)
        return self._sent_back()

    def _sent_back(self) -> bool:
        self._session.reachability.succeeded(*self._sending)
        return True

    def _given_up(self, message: StoredMessage, delay_level: int, error: SprocketError) -> bool:
        """Counts a refusal that is final; returns whether the message was refused too often."""
        limit = self._reconsume_max if 0 <= self._reconsume_max < _LOCAL_MAX else _LOCAL_MAX
        if delay_level >= 0 and message.reconsume_times < limit:
            message.reconsume_times += 1
            return False
        logger.error(
            "group %s gives up message %s, which stays in %s at %d: no broker stores it again: %s",
            self._group, message.message_id, message.queue, message.queue_offset, error,
        )  # fmt: skip
        return True

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._timeout_ms)

    async def _send_back(self, message: StoredMessage, delay_level: int) -> None:
        header = SendBack(
            offset=message.log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.properties.get(UNIQUE_KEY),
            origin_topic=message.topic,
            max_reconsume_times=self._reconsume_max,
            bname=message.queue.broker,
        )
        address = self._session.address_of(message.queue)
        await self._session.pool.ask(address, header, deadline=self._deadline())

    def _as_new(self, message: StoredMessage, delay_level: int) -> Envelope:
        properties = {
            name: value
            for name, value in message.properties.items()
            if name not in (HALF, RECONSUME_TIMES, RECONSUME_TIMES_MAX)
        }
        message_id = properties.get(UNIQUE_KEY, "")
        properties.setdefault(ORIGIN_ID, message_id)
        properties.setdefault(RETRY_TOPIC, message.topic)
        if not properties[ORIGIN_ID]:
            del properties[ORIGIN_ID]
        level = delay_level or min(_FIRST_LEVEL + message.reconsume_times, DELAY_LEVEL_MAX)
        properties[DELAY] = str(level)
        return Envelope(
            topic=retry_topic(self._group),
            body=message.body,
            properties=encode(properties),
            sys_flag=0,
            flag=message.flag,
            born_ms=message.born_ms,
            message_id=message_id,
            reconsume_times=message.reconsume_times + 1,
            reconsume_max=self._reconsume_max if delay_level >= 0 else 0,
        )
