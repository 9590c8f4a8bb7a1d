"""Offsets for pipelines: finds them by time, reads them as rows, commits them for groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from sprocket.base.errors import QueryNotFound
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_writable
from sprocket.spark.options.positions import format_offsets
from sprocket.spark.reading.ranges import between

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from sprocket.admin.caller import Caller
    from sprocket.protocol.requests.offset import QueryOffset
    from sprocket.spark.pipelines.parts.servers import Servers

Offsets = dict[QueueId, int]


def span(
    servers: Servers, topics: Iterable[str], *, since_ms: int | None, until_ms: int | None
) -> tuple[Offsets, Offsets]:
    """Offsets [start, end) of the messages that were stored between two times (ms since 1970).

    Raises:
        TopicNotFound: a topic does not exist.
        TransportError: the cluster does not answer.
    """
    return servers.ask(lambda caller: _span(caller, topics, since_ms, until_ms))


def ends(servers: Servers, topics: Iterable[str]) -> Offsets:
    """The end offset of each queue, which its next message gets. Raises as `span`."""
    return span(servers, topics, since_ms=None, until_ms=None)[1]


async def _span(
    caller: Caller, topics: Iterable[str], since_ms: int | None, until_ms: int | None
) -> tuple[Offsets, Offsets]:
    from sprocket.admin.topics import status

    start: Offsets = {}
    end: Offsets = {}
    for topic in topics:
        masters = await _masters(caller, topic)
        for one in await status(caller, topic):
            queue, address = QueueId(topic, one.broker, one.number), masters[one.broker]
            first, last = one.min_offset, one.max_offset
            if until_ms is not None:
                last = min(last, await _at(caller, address, queue, until_ms))
            if since_ms is not None:
                first = max(first, await _at(caller, address, queue, since_ms))
            start[queue], end[queue] = min(first, last), last
    return start, end


async def _at(caller: Caller, address: str, queue: QueueId, at_ms: int) -> int:
    """Offset of the first message stored at a time or later; the end offset if there is none."""
    from sprocket.protocol.requests.offset import OffsetReply, SearchOffset

    search = SearchOffset(
        topic=queue.topic, queue_id=queue.number, timestamp=at_ms, bname=queue.broker
    )
    return (await caller.ask(address, search)).read(OffsetReply).offset


async def _masters(caller: Caller, topic: str) -> dict[str, str]:
    from sprocket.admin.topics import route
    from sprocket.protocol.codes import MASTER

    parts = await route(caller, topic)
    return {one.broker: one.addresses[MASTER] for one in parts if MASTER in one.addresses}


async def writable(caller: Caller, topic: str) -> list[QueueId]:
    """The queues of a topic that take messages, sorted.

    Raises:
        TopicNotFound: no broker has the topic.
    """
    from sprocket.admin.topics import route
    from sprocket.protocol.codes import MASTER

    return sorted(
        QueueId(topic, part.broker, number)
        for part in await route(caller, topic)
        if MASTER in part.addresses and is_writable(part.permission)
        for number in range(part.write_queues)
    )


async def commit(caller: Caller, group: str, offsets: Mapping[QueueId, int]) -> None:
    """Commits a group's offsets; each is that of the next message to read.

    It queries each offset first: after a reset of the group, a broker ignores commits of clients
    that have not queried the offset since.
    """
    from sprocket.protocol.requests.offset import UpdateOffset

    masters: dict[str, dict[str, str]] = {}
    for queue, at in offsets.items():
        if queue.topic not in masters:
            masters[queue.topic] = await _masters(caller, queue.topic)
        address = masters[queue.topic][queue.broker]
        with suppress(QueryNotFound):
            await caller.ask(address, _where_is(group, queue))
        update = UpdateOffset(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.number,
            commit_offset=at,
            bname=queue.broker,
        )
        await caller.ask(address, update)


def _where_is(group: str, queue: QueueId) -> QueryOffset:
    from sprocket.protocol.requests.offset import QueryOffset

    return QueryOffset(
        consumer_group=group, topic=queue.topic, queue_id=queue.number, bname=queue.broker
    )


def rows(
    session: SparkSession,
    options: Mapping[str, str],
    schema: str,
    start: Mapping[QueueId, int],
    end: Mapping[QueueId, int],
) -> DataFrame:
    """The messages in [start, end) as rows; an empty frame if there are none."""
    ranges = between(start, end)
    if not ranges:
        return session.createDataFrame([], schema)
    names: dict[str, dict[str, list[int]]] = {}
    for one in ranges:
        numbers = names.setdefault(one.queue.topic, {}).setdefault(one.queue.broker, [])
        numbers.append(one.queue.number)
    exact = {
        "assign": json.dumps(names),
        "startingOffsets": format_offsets({one.queue: one.start for one in ranges}),
        "endingOffsets": format_offsets({one.queue: one.end for one in ranges}),
    }
    return session.read.format("rocketmq").schema(schema).options(**options, **exact).load()


def origin() -> Column:
    """The topic, broker, queue and offset of a row as one text: `orders@broker-a:3/17`."""
    from pyspark.sql import functions as f

    queue = f.concat("topic", f.lit("@"), "broker", f.lit(":"), "queue_id")
    return f.concat(queue, f.lit("/"), "queue_offset")


def marked(name: str, text: Column) -> Column:
    """The column `properties` with one property added, or replaced if it has one of that name."""
    from pyspark.sql import functions as f

    empty = f.create_map().cast("map<string,string>")
    own = f.map_filter(f.coalesce("properties", empty), lambda key, _: key != name)
    return f.map_concat(own, f.create_map(f.lit(name), text))
