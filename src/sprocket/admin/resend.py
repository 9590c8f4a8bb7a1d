"""Messages sent once more: as new ones, or dead letters back to the group that gave them up.

What the user set goes along: body, tag, keys, properties, the flag. What RocketMQ set does not:
a message that carried its old delay or retries would not go where it is wanted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from sprocket.admin import groups, reading, topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import ConsumerOffline, RouteNotFound, UsageError
from sprocket.message import properties as names
from sprocket.message.hosts import pack
from sprocket.message.ids import offset_id
from sprocket.message.message import StoredMessage
from sprocket.message.topic import dead_letter_topic, is_writable, retry_topic
from sprocket.protocol.bodies import RunningInfo
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.client import ConsumerRunning
from sprocket.protocol.requests.send import SendMessageV2, SendReply

#: The producer group that RocketMQ's tools send as.
_SENDER = "CLIENT_INNER_PRODUCER"
#: Names that RocketMQ sets besides those that it reserves.
_OWN = names.RESERVED | {
    names.TRANSACTION_ID,
    names.CHECK_TIMES,
    names.CHECK_IMMUNITY_SECONDS,
    names.INNER_COUNT,
    names.INNER_BASE,
}


class Resent(NamedTuple):
    """A message that was sent once more.

    Attributes:
        message_id: its unique id now.
        offset_id: names it by its place.
    """

    topic: str
    broker: str
    queue_number: int
    queue_offset: int
    message_id: str
    offset_id: str


def place_of(message: StoredMessage) -> str:
    """The offset id of a stored message."""
    return offset_id(pack(message.store_host), message.log_offset)


def user_properties(message: StoredMessage) -> dict[str, str]:
    """What the sender set: its own properties, without RocketMQ's, tag and keys."""
    return {name: value for name, value in message.properties.items() if name not in _OWN}


def origin_of(message: StoredMessage) -> str:
    """The topic that a message was sent to, before retries moved it."""
    return message.properties.get(names.RETRY_TOPIC) or message.topic


async def resend(caller: Caller, message: StoredMessage, *, topic: str | None = None) -> Resent:
    """Sends a message as a new one, to its original topic or to another; all its groups get it.

    Raises:
        TopicNotFound: no broker has the topic.
        RouteNotFound: no broker that has it takes messages.
        ReplyError: the broker refused it.
    """
    target = topic or origin_of(message)
    part = await _writable(caller, target, preferred=message.queue.broker)
    number = message.queue.number if target == message.topic else 0
    number = number if number < part.write_queues else 0
    return await _send(caller, part, message, topic=target, queue_number=number)


async def put_back(caller: Caller, message: StoredMessage, group: str) -> Resent:
    """Gives a dead letter back to its group alone; it may fail as often as a new one.

    The dead letter stays where it is, too.

    Raises:
        UsageError: the group consumes in order, which takes no retries; use `resend`.
        ReplyError: the broker refused it.
    """
    target = retry_topic(group)
    part = await _writable(caller, target, preferred=message.queue.broker)
    more = {names.RETRY_TOPIC: origin_of(message)}
    for name in (names.ORIGIN_ID, names.UNIQUE_KEY):
        if name in message.properties:
            more[name] = message.properties[name]
    return await _send(caller, part, message, topic=target, queue_number=0, more=more)


async def check_takes_retries(caller: Caller, group: str) -> None:
    """Asks a group's members, if there are any, whether they consume in order.

    Raises:
        UsageError: they do: what is sent to their retry topic becomes a dead letter again.
    """
    try:
        online = await groups.online(caller, group)
    except ConsumerOffline:
        return
    masters = await caller.masters()
    for member in online.members:
        header = ConsumerRunning(consumer_group=group, client_id=member.client_id)
        reply = await caller.ask(masters[member.brokers[0]], header)
        if RunningInfo.decode(reply.body).properties.get("PROP_CONSUMEORDERLY") == "true":
            raise UsageError(
                f"consumer group {group} consumes in order and takes no retries: "
                "resend to a topic instead"
            )


def dead_letters(
    caller: Caller, group: str, *, begin_ms: int = 0, end_ms: int = reading.FOREVER
) -> AsyncIterator[StoredMessage]:
    """Dead letters of a group that were given up between two times, ms since 1970 UTC.

    Raises:
        TopicNotFound: it has none.
    """
    topic = dead_letter_topic(group)
    return reading.messages(caller, topic, begin_ms=begin_ms, end_ms=end_ms)


async def _writable(caller: Caller, topic: str, *, preferred: str) -> topics.TopicPart:
    parts = [
        part
        for part in await topics.route(caller, topic)
        if MASTER in part.addresses and part.write_queues > 0 and is_writable(part.permission)
    ]
    if not parts:
        raise RouteNotFound(f"no broker takes messages of topic {topic}")
    return next((part for part in parts if part.broker == preferred), parts[0])


async def _send(
    caller: Caller,
    part: topics.TopicPart,
    message: StoredMessage,
    *,
    topic: str,
    queue_number: int,
    more: dict[str, str] | None = None,
) -> Resent:
    kept = user_properties(message) | (more or {})
    for name in (names.TAGS, names.KEYS):
        if name in message.properties:
            kept[name] = message.properties[name]
    header = SendMessageV2(
        producer_group=_SENDER,
        topic=topic,
        queue_id=queue_number,
        born_timestamp=message.born_ms,
        flag=message.flag,
        properties=names.encode(kept),
        bname=part.broker,
    )
    reply = await caller.ask(part.addresses[MASTER], header, body=message.body)
    told = reply.read(SendReply)
    return Resent(
        topic,
        part.broker,
        told.queue_id,
        told.queue_offset,
        kept.get(names.UNIQUE_KEY) or told.transaction_id or "",
        told.msg_id,
    )
