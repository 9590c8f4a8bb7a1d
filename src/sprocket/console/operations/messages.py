"""Operations about messages: find, read, send, send again, have one consumed."""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
from msgspec import Meta

from sprocket.admin import consumers, messages, reading, resend, topics
from sprocket.base.errors import QueryNotFound, UsageError
from sprocket.clientcore.envelope import JAVA_PACKING, seal
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.message_facts import (
    ANSWER_BYTES_MAX,
    BodyBytes,
    MessageFacts,
    facts_of,
    size_of,
)
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    GroupName,
    Limit,
    Offset,
    OneBroker,
    QueueNumber,
    Since,
    TopicName,
    Until,
    fields_of,
    ms_of,
)
from sprocket.message.message import Message, StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.protocol.codes import RequestCode

declared = Declarations()

MessageId = Annotated[
    str,
    Meta(min_length=1, max_length=128, description="An offset id, or with a topic a unique id."),
]
_Topic = Annotated[TopicName | None, Meta(description="The topic, in which the id is a unique id.")]


class MessageAsked(Asked, frozen=True, kw_only=True):
    """Which message."""

    id: MessageId
    topic: _Topic = None
    body_bytes: BodyBytes = 65_536


class FoundMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, the oldest first."""

    messages: list[MessageFacts]
    is_cut: Annotated[bool, Meta(description="Whether there were more than one answer holds.")] = (
        False
    )


class KeyAsked(Asked, frozen=True, kw_only=True):
    """Messages of which topic and key."""

    topic: TopicName
    key: Annotated[str, Meta(min_length=1, max_length=1_024, description="A key of a message.")]
    since: Since = None
    until: Until = None
    limit: Annotated[int, Meta(ge=1, le=64, description="At most so many of each broker.")] = 32
    body_bytes: BodyBytes = 4_096


class JourneyAsked(Asked, frozen=True, kw_only=True):
    """Which message."""

    topic: TopicName
    id: Annotated[str, Meta(min_length=1, max_length=128, description="The unique id.")]
    body_bytes: BodyBytes = 1_024


class TimeAsked(Asked, frozen=True, kw_only=True):
    """Messages of which time."""

    topic: TopicName
    since: Since = None
    until: Until = None
    limit: Limit = 100
    body_bytes: BodyBytes = 4_096


class OffsetAsked(Asked, frozen=True, kw_only=True):
    """Messages of which queue, from where on."""

    topic: TopicName
    broker: OneBroker
    queue: QueueNumber
    offset: Offset = 0
    limit: Limit = 100
    body_bytes: BodyBytes = 4_096


class QueueMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a queue, and where the rest begins."""

    messages: list[MessageFacts]
    next_offset: Annotated[
        int | None, Meta(description="`offset` of the next answer; none at the end of the queue.")
    ] = None


class TailAsked(Asked, frozen=True, kw_only=True):
    """How many of the newest messages."""

    topic: TopicName
    limit: Annotated[int, Meta(ge=1, le=100, description="The newest so many messages.")] = 10
    body_bytes: BodyBytes = 4_096


class MessageSent(ChangeAsked, frozen=True, kw_only=True):
    """A message to send."""

    topic: TopicName
    body: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1 << 20)] | None,
        Meta(description="The body, as text."),
    ] = None
    body_base64: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1 << 20)] | None,
        Meta(description="The body, as base64."),
    ] = None
    tag: Annotated[str, Meta(max_length=255)] | None = None
    keys: Annotated[list[Annotated[str, Meta(max_length=255)]], Meta(max_length=32)] = (
        msgspec.field(default_factory=list)
    )
    properties: Annotated[dict[str, str], Meta(max_length=100)] = msgspec.field(
        default_factory=dict
    )


class MessageAgain(ChangeAsked, frozen=True, kw_only=True):
    """Which message is sent again, and where to."""

    id: MessageId
    topic: _Topic = None
    to: Annotated[
        TopicName | None, Meta(description="The topic that it is sent to, if not its own.")
    ] = None


class ConsumedNow(ChangeAsked, frozen=True, kw_only=True):
    """Which member is to consume which message."""

    group: GroupName
    id: MessageId
    topic: _Topic = None
    client: Annotated[
        Annotated[str, Meta(max_length=255)] | None,
        Meta(description="Client id of the member; none: the first."),
    ] = None


@declared.reads(
    "messages.get",
    "/messages/{id}",
    codes=[RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.QUERY_MESSAGE],
)
async def get(given: OperationEnvironment, asked: MessageAsked) -> FoundMessages:
    """Shows the message with an offset id; with a topic, those with a unique id."""
    return _shown(await _found(given, asked.id, asked.topic), asked.body_bytes)


@declared.reads(
    "messages.by_key", "/topics/{topic}/messages/by-key", codes=[RequestCode.QUERY_MESSAGE]
)
async def by_key(given: OperationEnvironment, asked: KeyAsked) -> FoundMessages:
    """Finds the messages of a topic that have a key."""
    found = await messages.query(
        given.caller,
        asked.topic,
        asked.key,
        count_max=asked.limit,
        begin_ms=ms_of(asked.since, 0),
        end_ms=ms_of(asked.until, LONG_MAX),
    )
    return _shown(found, asked.body_bytes)


@declared.reads(
    "messages.journey", "/topics/{topic}/messages/journey", codes=[RequestCode.QUERY_MESSAGE]
)
async def journey(given: OperationEnvironment, asked: JourneyAsked) -> FoundMessages:
    """Follows a message: the original, groups' retries of it, and dead letters."""
    found = await messages.journey(given.caller, asked.topic, asked.id)
    return _shown(found, asked.body_bytes)


@declared.reads(
    "messages.by_time",
    "/topics/{topic}/messages/by-time",
    codes=[RequestCode.PULL_MESSAGE, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP],
)
async def by_time(given: OperationEnvironment, asked: TimeAsked) -> FoundMessages:
    """Reads the messages of a topic that were stored in a time, queue after queue."""
    found = reading.messages(
        given.caller,
        asked.topic,
        begin_ms=ms_of(asked.since, 0),
        end_ms=ms_of(asked.until, LONG_MAX),
    )
    taken, is_cut = await taken_of(found, asked.limit, asked.body_bytes)
    return FoundMessages(messages=sorted(taken, key=_stored), is_cut=is_cut)


@declared.reads(
    "messages.by_offset",
    "/topics/{topic}/messages/by-offset",
    codes=[RequestCode.PULL_MESSAGE, RequestCode.GET_TOPIC_STATS_INFO],
)
async def by_offset(given: OperationEnvironment, asked: OffsetAsked) -> QueueMessages:
    """Reads the messages of one queue from an offset on."""
    queue, address = await _queue(given, asked.topic, asked.broker, asked.queue)
    begin = max(asked.offset, queue.min_offset)
    found = reading.of_queue(given.caller, address, queue, topic=asked.topic, begin=begin)
    taken, _ = await taken_of(found, asked.limit, asked.body_bytes)
    after = taken[-1].offset + 1 if taken else queue.max_offset
    return QueueMessages(messages=taken, next_offset=after if after < queue.max_offset else None)


@declared.reads(
    "messages.tail",
    "/topics/{topic}/messages/tail",
    codes=[RequestCode.PULL_MESSAGE, RequestCode.GET_TOPIC_STATS_INFO],
)
async def tail(given: OperationEnvironment, asked: TailAsked) -> FoundMessages:
    """Shows the newest messages of a topic."""
    masters = await topics.masters_of(given.caller, asked.topic)
    # The queues with the newest messages come first, so one whose last message is older than all
    # that are found need not be read, nor any after it.
    queues = sorted(
        await topics.status(given.caller, asked.topic), key=lambda queue: -queue.updated_ms
    )
    newest: list[MessageFacts] = []
    for queue in queues:
        full = len(newest) == asked.limit
        is_older = full and ms_of(newest[0].stored_at, 0) > queue.updated_ms
        if queue.broker not in masters or is_older:
            continue
        begin = max(queue.min_offset, queue.max_offset - asked.limit)
        found = reading.of_queue(
            given.caller, masters[queue.broker], queue, topic=asked.topic, begin=begin
        )
        taken, _ = await taken_of(found, asked.limit, asked.body_bytes)
        newest = heapq.nlargest(asked.limit, [*newest, *taken], key=_stored)
        newest.reverse()
    return FoundMessages(messages=newest)


@declared.changes(
    "messages.send", "POST /topics/{topic}/messages", codes=[RequestCode.SEND_MESSAGE_V2]
)
async def send(given: OperationEnvironment, asked: MessageSent) -> ChangeReport:
    """Sends a message to a topic that exists."""
    if (asked.body is None) == (asked.body_base64 is None):
        raise UsageError("give body or body_base64")
    try:
        body = (
            asked.body.encode()
            if asked.body is not None
            else base64.b64decode(asked.body_base64 or "", validate=True)
        )
    except (binascii.Error, ValueError):
        raise UsageError("body_base64 is no base64, or body no Unicode") from None
    message = Message(
        asked.topic, body, tag=asked.tag, keys=asked.keys, properties=asked.properties
    )
    sealed = seal(message, given.ids, given.now_ms(), JAVA_PACKING)
    if asked.dry_run:
        await topics.route(given.caller, asked.topic)
        after = {"topic": asked.topic, "body_bytes": len(body)}
    else:
        after = fields_of(await resend.send(given.caller, sealed))
    return ChangeReport(
        dry_run=asked.dry_run, changes=[ChangeLine(what=f"message of {asked.topic}", after=after)]
    )


@declared.changes(
    "messages.resend",
    "POST /messages/{id}/resend",
    codes=[RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.SEND_MESSAGE_V2],
    is_destructive=True,
)
async def again(given: OperationEnvironment, asked: MessageAgain) -> ChangeReport:
    """Sends a message again as a new one; all groups of its topic get it."""
    message = (await _found(given, asked.id, asked.topic))[0]
    target = asked.to or resend.origin_of(message)
    if asked.dry_run:
        await topics.route(given.caller, target)
        after = {"topic": target}
    else:
        after = fields_of(await resend.resend(given.caller, message, topic=asked.to))
    return ChangeReport(
        dry_run=asked.dry_run, changes=[ChangeLine(what=f"message {asked.id}", after=after)]
    )


@declared.changes(
    "messages.consume",
    "POST /groups/{group}/consume",
    codes=[RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.CONSUME_MESSAGE_DIRECTLY],
    is_destructive=True,
)
async def consume(given: OperationEnvironment, asked: ConsumedNow) -> ChangeReport:
    """Has a member of a group consume one message now; no offset changes."""
    message = (await _found(given, asked.id, asked.topic))[0]
    after = None
    if not asked.dry_run:
        after = fields_of(
            await consumers.consume_directly(
                given.caller, asked.group, message, client_id=asked.client
            )
        )
    return ChangeReport(
        dry_run=asked.dry_run, changes=[ChangeLine(what=f"message {asked.id}", after=after)]
    )


async def taken_of(
    found: AsyncGenerator[StoredMessage, None], limit: int, body_bytes: int
) -> tuple[list[MessageFacts], bool]:
    """The first messages, as many as an answer holds, and whether there were more.

    Each is cut as it comes: a thousand bodies of 4 MiB must never be in memory together.
    """
    taken: list[MessageFacts] = []
    size = 0
    async with aclosing(found) as stream:
        async for message in stream:
            size += size_of(message, body_bytes)
            if len(taken) >= limit or (taken and size > ANSWER_BYTES_MAX):
                return taken, True
            taken.append(facts_of(message, body_bytes))
    return taken, False


def _stored(facts: MessageFacts) -> int:
    """When a message was stored, ms."""
    return ms_of(facts.stored_at, 0)


def _shown(found: list[StoredMessage], body_bytes: int) -> FoundMessages:
    shown: list[MessageFacts] = []
    size = 0
    for message in found:
        size += size_of(message, body_bytes)
        if shown and size > ANSWER_BYTES_MAX:
            return FoundMessages(messages=shown, is_cut=True)
        shown.append(facts_of(message, body_bytes))
    return FoundMessages(messages=shown)


async def _found(
    given: OperationEnvironment, message_id: str, topic: str | None
) -> list[StoredMessage]:
    if topic is None:
        return [await messages.view(given.caller, message_id)]
    found = await messages.by_unique_id(given.caller, topic, message_id)
    if not found:
        raise QueryNotFound(f"no message {message_id} in topic {topic}")
    return found


async def _queue(
    given: OperationEnvironment, topic: str, broker: str, number: int
) -> tuple[topics.QueueStatus, str]:
    """A queue, and the address of its broker."""
    masters = await topics.masters_of(given.caller, topic)
    for queue in await topics.status(given.caller, topic):
        if (queue.broker, queue.number) == (broker, number):
            return queue, masters[broker]
    raise QueryNotFound(f"topic {topic} has no queue {number} on broker {broker}")
