"""Reads the messages of a topic, queue after queue, without joining a consumer group."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from sprocket.admin import topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import ReplyError
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.opening import Opening
from sprocket.message.record import scan
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.requests.offset import OffsetReply, SearchOffset
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage, PullReply

#: The group name of RocketMQ's tools. Brokers have this group; reads here commit nothing.
READER = "TOOLS_CONSUMER"

_AT_ONCE = 32
_ENDS = (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)


async def messages(
    caller: Caller, topic: str, *, begin_ms: int = 0, end_ms: int = LONG_MAX
) -> AsyncGenerator[StoredMessage, None]:
    """Yields messages stored between two times, ms since 1970 UTC, without the end.

    Queues are read one after the other. Each is read up to its end at the time when reading it
    begins.

    Raises:
        TopicNotFound: no broker has the topic.
    """
    for part in await topics.route(caller, topic):
        address = part.addresses.get(MASTER)
        if address is None:
            continue
        for queue in await topics.status(caller, topic):
            if queue.broker != part.broker:
                continue
            begin = queue.min_offset
            if begin_ms > 0:
                search = SearchOffset(
                    topic=topic, queue_id=queue.number, timestamp=begin_ms, lo=False
                )
                found = (await caller.ask(address, search)).read(OffsetReply)
                begin = max(begin, found.offset)
            async for message in of_queue(caller, address, queue, topic=topic, begin=begin):
                if message.stored_ms >= end_ms:
                    break
                if message.stored_ms >= begin_ms:
                    yield message


async def of_queue(
    caller: Caller, address: str, queue: topics.QueueStatus, *, topic: str, begin: int
) -> AsyncGenerator[StoredMessage, None]:
    """Yields the messages of one queue from an offset on, up to its end in `queue`.

    Args:
        address: of a broker that has the queue.

    Raises:
        TransportError, ReplyError: the broker did not answer, or refused.
    """
    offset = begin
    while offset < queue.max_offset:
        header = PullMessage(
            consumer_group=READER,
            topic=topic,
            queue_id=queue.number,
            queue_offset=offset,
            max_msg_nums=_AT_ONCE,
            sys_flag=SUBSCRIPTION,
            subscription="*",
            bname=queue.broker,
            lo=False,
        )
        try:
            reply = await caller.ask(address, header)
        except ReplyError as error:
            if error.code in _ENDS:
                return
            raise
        opening = Opening()
        for message in scan(reply.body, queue.broker, opening=opening):
            if offset <= message.queue_offset < queue.max_offset:
                yield message
        after = opening.stopped_at or reply.read(PullReply).next_begin_offset
        offset = max(after, offset + 1)
