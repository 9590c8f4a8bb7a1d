"""Offsets of consumer groups: lag, reset, copy from another group."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.admin import known, topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import UsageError
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ConsumeStats, ResetOffsetBody, TopicList
from sprocket.protocol.requests.group import ConsumeStatsOf, GroupTopics
from sprocket.protocol.requests.offset import (
    CloneOffset,
    OffsetReply,
    ResetOffset,
    SearchOffset,
)

#: Values of `at_ms` in `reset` besides ms since 1970 UTC: the oldest message, the end.
FIRST, LAST = 0, -1


class QueueLag(NamedTuple):
    """A group's progress in a queue. Offsets are queue offsets.

    Attributes:
        committed: offset of the next message to consume.
        end: offset that the queue's next message will get.
        pulled: offset of the next message to fetch; at least `committed`.
        consumed_ms: when the last consumed message was stored, ms since 1970 UTC; 0 for none.
    """

    topic: str
    broker: str
    number: int
    committed: int
    end: int
    pulled: int
    consumed_ms: int

    @property
    def behind(self) -> int:
        """The lag: messages that are not consumed."""
        return max(self.end - self.committed, 0)


class ConsumerLag(NamedTuple):
    """A group's progress in all its queues.

    Attributes:
        per_second: messages that it fetched per second, over the last minute.
    """

    queues: list[QueueLag]
    per_second: float

    @property
    def behind(self) -> int:
        """The lag in all queues: messages that are not consumed."""
        return sum(queue.behind for queue in self.queues)


async def lag(caller: Caller, group: str, *, topic: str | None = None) -> ConsumerLag:
    """A group's progress in its topics, or in one; without queues if it never consumed."""
    found: list[QueueLag] = []
    per_second = 0.0
    header = ConsumeStatsOf(consumer_group=group, topic=topic)
    for reply in (await caller.ask_each(await caller.masters(), header)).values():
        stats = ConsumeStats.decode(reply.body)
        per_second += stats.consume_tps
        for queue, progress in stats.offset_table.items():
            found.append(
                QueueLag(
                    queue.topic,
                    queue.broker_name,
                    queue.queue_id,
                    progress.consumer_offset,
                    progress.broker_offset,
                    max(progress.pull_offset, progress.consumer_offset),
                    progress.last_timestamp,
                )
            )
    return ConsumerLag(sorted(found), per_second)


async def reset(
    caller: Caller,
    group: str,
    topic: str,
    *,
    at_ms: int = FIRST,
    queue: QueueId | None = None,
    offset: int | None = None,
) -> dict[QueueId, int]:
    """Resets a group's offsets to a time, or in one queue to an offset, online or not.

    Online members continue there within moments. Messages that they were processing may be
    consumed twice; commits of these are ignored.

    Args:
        at_ms: ms since 1970 UTC, or `FIRST`, or `LAST`. The group continues at the first message
            stored at this time or later.
        queue: only this queue; None for all.
        offset: new offset in `queue`; then `at_ms` is ignored.

    Returns:
        The new offset of each queue.

    Raises:
        UsageError: an offset without a queue, or no broker has the queue.
        TopicNotFound, GroupNotFound: there is no such topic or group.
        ReplyError: the offset is outside the queue.
    """
    if offset is not None and queue is None:
        raise UsageError("an offset needs a queue")
    header = ResetOffset(
        topic=topic,
        group=group,
        timestamp=at_ms,
        is_force=True,
        queue_id=-1 if queue is None else queue.number,
        offset=-1 if offset is None else offset,
    )
    masters = {
        broker: address
        for broker, address in (await topics.masters_of(caller, topic)).items()
        if queue is None or broker == queue.broker
    }
    if not masters:
        raise UsageError(f"no broker holds {topic if queue is None else queue}")
    moved: dict[QueueId, int] = {}
    for reply in (await caller.ask_each(masters, header)).values():
        table = ResetOffsetBody.decode(reply.body).offset_table
        for each, position in table.items():
            moved[QueueId(each.topic, each.broker_name, each.queue_id)] = position
    return dict(sorted(moved.items()))


async def at_time(caller: Caller, topic: str, at_ms: int) -> dict[QueueId, int]:
    """The offset in each queue of a topic at a time, as `reset` finds it; nothing is changed.

    Args:
        at_ms: ms since 1970 UTC, or `FIRST`, or `LAST`.

    Raises:
        TopicNotFound: there is no such topic.
    """
    masters = await topics.masters_of(caller, topic)
    found: dict[QueueId, int] = {}
    for queue in await topics.status(caller, topic):
        offset = queue.min_offset if at_ms == FIRST else queue.max_offset
        if at_ms not in (FIRST, LAST):
            search = SearchOffset(topic=topic, queue_id=queue.number, timestamp=at_ms)
            reply = await caller.ask(masters[queue.broker], search)
            offset = reply.read(OffsetReply).offset
        found[QueueId(topic, queue.broker, queue.number)] = offset
    return found


async def clone(
    caller: Caller, source: str, target: str, *, topic: str | None = None
) -> dict[QueueId, int]:
    """Copies a group's committed offsets to another group, in one topic or in all.

    Returns:
        The target's new offsets.

    Raises:
        TopicNotFound, GroupNotFound: there is no such topic, or no such source group.
        UsageError: the source has no offsets to copy.
    """
    await known.check_group(caller, source)
    if topic is not None:
        await known.check_topic(caller, topic)
    consumed = await _topics_of(caller, source)
    if topic is not None:
        consumed &= {topic}
    if not consumed:
        raise UsageError(f"{source} never consumed {topic or 'anything'}: there is nothing to copy")
    header = CloneOffset(src_group=source, dest_group=target, topic=topic, offline=True)
    await caller.ask_each(await caller.masters(), header)
    stands = await lag(caller, target, topic=topic)
    return {
        QueueId(each.topic, each.broker, each.number): each.committed
        for each in stands.queues
        if each.topic in consumed
    }


async def _topics_of(caller: Caller, group: str) -> set[str]:
    """The topics in which a group has offsets."""
    replies = await caller.ask_each(await caller.masters(), GroupTopics(group=group))
    return {name for each in replies.values() for name in TopicList.decode(each.body).topic_list}
