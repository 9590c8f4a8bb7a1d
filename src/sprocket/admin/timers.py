"""Delayed messages: how many wait, when they are due; recalls of one."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.admin.caller import Caller
from sprocket.message.recall import RecallHandle
from sprocket.protocol.bodies import TimerMetricsBody
from sprocket.protocol.requests.replica import TimerMetrics
from sprocket.protocol.requests.send import RecallMessage, RecallReply

_GROUP = "sprocket-admin"


class TimerBacklog(NamedTuple):
    """The messages that wait at a broker.

    Attributes:
        topics: messages by topic.
        spans: number of messages by seconds until they are due; each span begins where the one
            before ends. Empty if the broker does not report it, as Java's.
        later: messages due after the last span; -1 if the broker does not report it.
        next_ms: when the next may be due, ms since 1970 UTC; 0 for none, or not reported.
    """

    broker: str
    topics: dict[str, int]
    spans: dict[int, int]
    later: int
    next_ms: int

    @property
    def total(self) -> int:
        """The number of all of them."""
        return sum(self.topics.values())


async def waiting(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> list[TimerBacklog]:
    """How many messages wait, at all masters, those of a cluster, or one.

    Raises:
        UsageError: there is no such broker.
        ReplyError: a broker does not support timed messages.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    return [
        _backlog(name, TimerMetricsBody.decode(reply.body))
        for name, reply in (await caller.ask_each(masters, TimerMetrics())).items()
    ]


def _backlog(broker: str, body: TimerMetricsBody) -> TimerBacklog:
    topics = {topic: metric.count for topic, metric in body.timing_count.items()}
    spans = {int(text): count for text, count in (body.timing_distribution or {}).items()}
    return TimerBacklog(
        broker,
        {topic: count for topic, count in sorted(topics.items()) if count > 0},
        dict(sorted(spans.items())),
        -1 if body.later_count is None else body.later_count,
        body.next_deliver_time or 0,
    )


async def recall(caller: Caller, handle: str) -> str:
    """Recalls a waiting message; returns its unique id.

    Raises:
        UsageError: the text is not a handle, or its broker is not registered.
        ReplyError: the broker refused: it is too late, or recalls are switched off.
    """
    said = RecallHandle.parse(handle)
    masters = await caller.masters(broker=said.broker)
    header = RecallMessage(
        producer_group=_GROUP, topic=said.topic, recall_handle=handle, bname=said.broker
    )
    reply = await caller.ask(masters[said.broker], header)
    return reply.read(RecallReply).msg_id or said.unique_key
