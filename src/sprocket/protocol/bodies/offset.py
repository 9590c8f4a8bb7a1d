"""Tables of offsets, with queue numbers or whole queues as keys.

Source: ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper, TopicStatsTable, ConsumeStats,
ConsumeStatsList, ResetOffsetBody, ResetOffsetBodyForC, GetConsumerStatusBody,
QueryConsumeTimeSpanBody, QueryCorrectionOffsetBody of RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.bodies.body import Body, DataVersion, Queue, always
from sprocket.protocol.command import Long


class OffsetTable(Body):
    """Reply body of `AllOffsets`: by `topic@group` and queue number."""

    is_dialect: ClassVar[bool] = True

    data_version: DataVersion | None = None
    group_topic_map: dict[str, list[str]] | None = None
    offset_table: dict[str, dict[Long, Long]] = always({})


class DelayOffsets(Body):
    """Reply body of `AllDelayOffsets`: by level."""

    is_dialect: ClassVar[bool] = True

    data_version: DataVersion | None = None
    offset_table: dict[Long, Long] = always({})


class QueueRange(Body):
    """A queue's first offset, and the offset after its last. Source: TopicOffset."""

    last_update_timestamp: Long = always(0)
    max_offset: Long = always(0)
    min_offset: Long = always(0)


class TopicStatsTable(Body):
    """Reply body of `TopicStats`."""

    is_dialect: ClassVar[bool] = True

    offset_table: dict[Queue, QueueRange] = always({})
    topic_put_tps: float | None = None


class QueueProgress(Body):
    """A group's progress in a queue. Source: OffsetWrapper."""

    broker_offset: Long = always(0)
    consumer_offset: Long = always(0)
    last_timestamp: Long = always(0)
    pull_offset: Long = always(0)


class ConsumeStats(Body):
    """Reply body of `ConsumeStatsOf`."""

    is_dialect: ClassVar[bool] = True

    consume_tps: float = always(0.0)
    offset_table: dict[Queue, QueueProgress] = always({})


class ConsumeStatsList(Body):
    """Reply body of `AllConsumeStats`: each item is for one group."""

    is_dialect: ClassVar[bool] = True

    broker_addr: str | None = None
    consume_stats_list: list[dict[str, list[ConsumeStats]]] = always([])
    total_diff: Long = always(0)
    total_inflight_diff: Long = always(0)


class QueueOffsetItem(Body):
    """A queue's offset, in the form for clients in C++."""

    broker_name: str = always("")
    offset: Long = always(0)
    queue_id: Long = always(0)
    topic: str = always("")


class ResetOffsetList(Body):
    """Body of `ResetClientOffset` for clients in C++."""

    offset_table: list[QueueOffsetItem] = always([])


class ResetOffsetBody(Body):
    """Body of `ResetClientOffset`, reply body of `ResetOffset`."""

    is_dialect: ClassVar[bool] = True

    offset_table: dict[Queue, Long] = always({})


class ConsumeStatusBody(Body):
    """Reply body of `ConsumeStatus`, by client, and of `ClientConsumeStatus`, for one client."""

    is_dialect: ClassVar[bool] = True

    consumer_table: dict[str, dict[Queue, Long]] = always({})
    message_queue_table: dict[Queue, Long] = always({})


class QueueTimeSpan(Body):
    """The times of one queue, in ms and as texts, and the group's delay in ms."""

    consume_time_stamp: Long = always(0)
    consume_time_stamp_str: str | None = None
    delay_time: Long = always(0)
    max_time_stamp: Long = always(0)
    max_time_stamp_str: str | None = None
    message_queue: Queue | None = None
    min_time_stamp: Long = always(0)
    min_time_stamp_str: str | None = None


class ConsumeTimeSpans(Body):
    """Reply body of `ConsumeTimeSpan`."""

    consume_time_span_set: list[QueueTimeSpan] = always([])


class CorrectionOffsets(Body):
    """Reply body of `QueryCorrectionOffset`: by queue number."""

    is_dialect: ClassVar[bool] = True

    correction_offsets: dict[Long, Long] = always({})


class LocalOffsetTable(Body):
    """A broadcasting consumer's own offset file. Source: OffsetSerializeWrapper."""

    is_dialect: ClassVar[bool] = True

    data_version: DataVersion | None = None
    offset_table: dict[Queue, Long] = always({})
