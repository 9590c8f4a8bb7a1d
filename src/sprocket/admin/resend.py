"""Sends messages: new ones, stored ones again as new ones, or dead letters to their group.

Of a message that is sent again, the body, tag, keys, flag and the sender's properties are kept.
RocketMQ's own properties are not: with its old delay or retry properties a message would not arrive
at its topic.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

from sprocket.admin import groups, reading, topics
from sprocket.admin.caller import Caller
from sprocket.audit.codes import TOOLS
from sprocket.base.errors import ConsumerOffline, NotLeaderForQueue, RouteNotFound, UsageError
from sprocket.clientcore.envelope import NEW_TOPIC_QUEUES, Envelope
from sprocket.message import properties as names
from sprocket.message.hosts import pack
from sprocket.message.ids import offset_id
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.queue import QueueId
from sprocket.message.topic import dead_letter_topic, is_writable, retry_topic
from sprocket.protocol.bodies import RunningInfo
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.client import ConsumerRunning
from sprocket.protocol.requests.send import SendMessage, SendMessageV2, SendReply

#: Properties that RocketMQ sets; some of them are not reserved names.
_OWN = names.RESERVED | {
    names.TRANSACTION_ID,
    names.CHECK_TIMES,
    names.CHECK_IMMUNITY_SECONDS,
    names.INNER_COUNT,
    names.INNER_BASE,
}


class Resent(NamedTuple):
    """A message that was sent again.

    Attributes:
        message_id: its new unique id.
        offset_id: its new offset id.
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
    """The sender's own properties, without RocketMQ's and without tag and keys."""
    return {name: value for name, value in message.properties.items() if name not in _OWN}


def origin_of(message: StoredMessage) -> str:
    """The topic that a message was originally sent to, before any retry."""
    return message.properties.get(names.RETRY_TOPIC) or message.topic


async def resend(caller: Caller, message: StoredMessage, *, topic: str | None = None) -> Resent:
    """Sends a message as a new one, to its original topic or to another; all its groups get it.

    Raises:
        TopicNotFound: no broker has the topic.
        RouteNotFound: no broker with the topic accepts messages.
        ReplyError: the broker refused it.
    """
    target = topic or origin_of(message)
    part = await _writable(caller, target, preferred=message.queue.broker)
    number = message.queue.number if target == message.topic else 0
    number = number if number < part.write_queues else 0
    return await _send(caller, part, message, topic=target, queue_number=number)


async def send(caller: Caller, sealed: Envelope) -> Resent:
    """Sends a new message to its topic, which must exist.

    Raises:
        TopicNotFound: no broker has the topic.
        RouteNotFound: no broker with the topic accepts messages.
        ReplyError: the broker refused it.
    """
    part = await _writable(caller, sealed.topic, preferred="")
    queue = QueueId(sealed.topic, part.broker, sealed.born_ms % part.write_queues)
    header = sealed.header(queue, group=TOOLS, new_topic_queues=NEW_TOPIC_QUEUES)
    return await _ask(caller, part, header, bytes(sealed.body), message_id=sealed.message_id)


async def put_back(caller: Caller, message: StoredMessage, group: str) -> Resent:
    """Sends a dead letter to its group alone. It has all its retries again.

    The dead letter also stays in the dead-letter topic.

    Raises:
        TopicNotFound, RouteNotFound: no broker has the group's retry topic, or accepts messages.
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
    """Checks that no online member of a group uses ordered consumption.

    Raises:
        UsageError: one does, so a message in the retry topic would become a dead letter again.
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
                f"consumer group {group} uses ordered consumption and takes no retries: "
                "resend to the topic instead"
            )


def dead_letters(
    caller: Caller, group: str, *, begin_ms: int = 0, end_ms: int = LONG_MAX
) -> AsyncGenerator[StoredMessage, None]:
    """Dead letters of a group, stored between two times, ms since 1970 UTC.

    Raises:
        TopicNotFound: the group has none.
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
        raise RouteNotFound(f"no broker accepts messages of topic {topic}")
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
    # In this form an audit log has it: see `sprocket.audit.codes.CHANGES_BY_TOOLS`.
    header = SendMessage(
        producer_group=TOOLS,
        topic=topic,
        queue_id=queue_number,
        born_timestamp=message.born_ms,
        flag=message.flag,
        properties=names.encode(kept),
        bname=part.broker,
    )
    named = kept.get(names.UNIQUE_KEY) or ""
    return await _ask(caller, part, header, message.body, message_id=named)


async def _ask(
    caller: Caller,
    part: topics.TopicPart,
    header: SendMessage | SendMessageV2,
    body: bytes,
    *,
    message_id: str,
) -> Resent:
    try:
        reply = await caller.ask(part.addresses[MASTER], header, body=body)
    except NotLeaderForQueue:  # the topic is static: any queue that this broker leads
        header.queue_id = -1
        reply = await caller.ask(part.addresses[MASTER], header, body=body)
    told = reply.read(SendReply)
    return Resent(
        header.topic,
        part.broker,
        told.queue_id,
        told.queue_offset,
        message_id or told.transaction_id or "",
        told.msg_id,
    )
