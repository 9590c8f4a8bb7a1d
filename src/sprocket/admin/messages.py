"""Finds messages: by offset id, by key, by unique id."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from sprocket.admin import topics, volumes
from sprocket.admin.caller import Caller
from sprocket.base.errors import (
    CorruptRecord,
    QueryNotFound,
    ReplyError,
    TopicNotFound,
    TransportError,
    UsageError,
)
from sprocket.message import record
from sprocket.message.ids import parse_offset_id
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.opening import Opening
from sprocket.message.topic import dead_letter_topic, retry_topic
from sprocket.protocol.requests.query import QueryMessage, ViewMessage

_UNIQUE_ID = "UNIQ_KEY"


async def view(caller: Caller, offset_id: str) -> StoredMessage:
    """The message with an offset id.

    The id contains the address that the broker had when it stored the message, and another broker
    may be there now, or none. So all brokers are asked, and the record itself says whether it is
    the one: it contains that address too. The old address is asked last, if no broker that is
    registered has the message.

    Raises:
        UsageError: the text is not an offset id.
        QueryNotFound: no message begins there.
        TransportError: no broker could be asked.
    """
    address, offset = parse_offset_id(offset_id)
    try:
        masters = await caller.masters()
    except UsageError:  # no broker is registered; one that lost its name servers may be there
        masters = {}
    here = {name: each for name, each in masters.items() if each == address}
    others = {name: each for name, each in masters.items() if each != address}
    failures: list[TransportError] = []
    for servers in (here, others, {} if here else {"": address}):
        asked = (_stored(caller, name, servers[name], offset) for name in servers)
        for found in await asyncio.gather(*asked):
            if isinstance(found, TransportError):
                failures.append(found)
            elif found is not None and found.store_host == address:
                return found
    if len(failures) > len(masters):
        raise failures[-1]
    unasked = "".join(f"; {failure}" for failure in failures)
    raise QueryNotFound(f"no message begins at {offset} of {address}{unasked}")


async def _stored(
    caller: Caller, broker: str, address: str, offset: int
) -> StoredMessage | TransportError | None:
    """The record at a log offset of one broker; None if there is none, or what prevents asking."""
    try:
        reply = await caller.ask(address, ViewMessage(offset=offset))
        return record.decode(bytes(reply.body), broker_name=broker, opens_body=True)
    except (CorruptRecord, ReplyError):
        return None
    except TransportError as error:
        return error


async def query(
    caller: Caller,
    topic: str,
    key: str,
    *,
    count_max: int = 64,
    begin_ms: int = 0,
    end_ms: int = LONG_MAX,
) -> list[StoredMessage]:
    """Messages of a topic that have a key, oldest first; empty if there are none.

    Brokers search by a hash, so replies may contain other keys; those are dropped here.

    Args:
        count_max: how many each broker may return.
        begin_ms, end_ms: when they were stored, ms since 1970 UTC.

    Raises:
        TopicNotFound: no broker has the topic.
    """
    found = await _ask_all(
        caller,
        QueryMessage(
            topic=topic, key=key, max_num=count_max, begin_timestamp=begin_ms, end_timestamp=end_ms
        ),
    )
    return [message for message in found if message.topic == topic and key in message.keys]


async def by_unique_id(caller: Caller, topic: str, unique_id: str) -> list[StoredMessage]:
    """Messages of a topic that have a unique id: one, or copies of it."""
    found = await _ask_all(
        caller,
        QueryMessage(
            topic=topic,
            key=unique_id,
            max_num=32,
            begin_timestamp=0,
            end_timestamp=LONG_MAX,
            unique_key_query=True,
        ),
    )
    return [
        message
        for message in found
        if message.topic == topic and message.properties.get(_UNIQUE_ID) == unique_id
    ]


async def journey(
    caller: Caller, topic: str, unique_id: str, *, groups: Sequence[str] = ()
) -> list[StoredMessage]:
    """All copies of a message: the original, and groups' retries and dead letters of it.

    Args:
        groups: groups to search besides those that consume the topic.

    Raises:
        TopicNotFound: no broker has the topic.
    """
    found = await by_unique_id(caller, topic, unique_id)
    for group in sorted({*groups, *await volumes.groups_of(caller, topic)}):
        for own in (retry_topic(group), dead_letter_topic(group)):
            with contextlib.suppress(TopicNotFound):
                found += await by_unique_id(caller, own, unique_id)
    return sorted(found, key=lambda message: message.stored_ms)


async def _ask_all(caller: Caller, question: QueryMessage) -> list[StoredMessage]:
    masters = await topics.masters_of(caller, question.topic)
    replies = await caller.ask_each(masters, question, absent=(QueryNotFound,))
    opening = Opening(keeps_rest=True)
    found = {
        (broker, message.log_offset, message.queue_offset): message
        for broker, reply in replies.items()
        for message in record.scan(reply.body, broker, opening=opening)
    }
    return sorted(found.values(), key=lambda message: message.stored_ms)
