"""Bodies about the state of consumers and brokers.

Source: ConsumerRunningInfo, ProcessQueueInfo, PopProcessQueueInfo, ConsumeStatus, BrokerStatsData,
QueryConsumeQueueResponseBody, TimerMetrics, HARuntimeInfo, BatchAckMessageRequestBody of RocketMQ
4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.bodies.body import Body, DataVersion, Queue, always
from sprocket.protocol.bodies.client import SubscriptionData
from sprocket.protocol.command import Long


class WindowState(Body):
    """A consumer's window of a queue. Source: ProcessQueueInfo."""

    cached_msg_count: Long = always(0)
    cached_msg_max_offset: Long = always(0)
    cached_msg_min_offset: Long = always(0)
    cached_msg_size_in_mi_b: Long = always(0, name="cachedMsgSizeInMiB")
    commit_offset: Long = always(0)
    dropped: bool = always(False, name="droped")
    last_consume_timestamp: Long = always(0)
    last_lock_timestamp: Long = always(0)
    last_pull_timestamp: Long = always(0)
    locked: bool = always(False)
    transaction_msg_count: Long = always(0)
    transaction_msg_max_offset: Long = always(0)
    transaction_msg_min_offset: Long = always(0)
    try_unlock_times: Long = always(0)


class PopWindowState(Body):
    """The unacknowledged messages of a popping consumer in a queue. Source: PopProcessQueueInfo."""

    dropped: bool = always(False, name="droped")
    last_pop_timestamp: Long = always(0)
    wait_ack_count: Long = always(0)


class ConsumeRates(Body):
    """Rates per second and times in ms of a topic. Source: ConsumeStatus."""

    consume_failed_msgs: Long = always(0)
    consume_failed_tps: float = always(0.0, name="consumeFailedTPS")
    consume_ok_tps: float = always(0.0, name="consumeOKTPS")
    consume_rt: float = always(0.0, name="consumeRT")
    pull_rt: float = always(0.0, name="pullRT")
    pull_tps: float = always(0.0, name="pullTPS")


class RunningInfo(Body):
    """Reply body of `ConsumerRunning`. `jstack`: the stacks of its threads or tasks."""

    is_dialect: ClassVar[bool] = True

    jstack: str | None = None
    mq_pop_table: dict[Queue, PopWindowState] | None = None
    mq_table: dict[Queue, WindowState] = always({})
    properties: dict[str, str] = always({})
    status_table: dict[str, ConsumeRates] = always({})
    subscription_set: list[SubscriptionData] = always([])
    user_consumer_info: dict[str, str] | None = None


class StatsItem(Body):
    """Sum, rate per second and average of a span of time. Source: BrokerStatsItem."""

    avgpt: float = always(0.0)
    sum: Long = always(0)
    tps: float = always(0.0)


class BrokerStatsBody(Body):
    """Reply body of `BrokerStats`."""

    stats_day: StatsItem | None = None
    stats_hour: StatsItem | None = None
    stats_minute: StatsItem | None = None


class QueueEntry(Body):
    """One entry of a consume queue. Source: ConsumeQueueData."""

    bit_map: str | None = None
    eval: bool = always(False)
    extend_data_json: str | None = None
    msg: str | None = None
    physic_offset: Long = always(0)
    physic_size: Long = always(0)
    tags_code: Long = always(0)


class ConsumeQueueBody(Body):
    """Reply body of `QueryConsumeQueue`."""

    filter_data: str | None = None
    max_queue_index: Long = always(0)
    min_queue_index: Long = always(0)
    queue_data: list[QueueEntry] = always([])
    subscription_data: SubscriptionData | None = None


class TimerMetric(Body):
    """The messages of a topic that wait in the timer."""

    count: Long = always(0)
    time_stamp: Long = always(0)


class TimerMetricsBody(Body):
    """Reply body of `TimerMetrics`: by topic. Sprocket adds counts by time, which Java ignores.

    Attributes:
        timing_distribution: the number of messages due within a number of seconds (the key) and
            not within the previous key.
        later_count: the number of messages that are due after their time on the wheel.
        next_deliver_time: when the next may be due, ms; 0 for none.
    """

    data_version: DataVersion | None = None
    timing_count: dict[str, TimerMetric] = always({})
    timing_distribution: dict[str, Long] | None = None
    later_count: Long | None = None
    next_deliver_time: Long | None = None


class SlaveState(Body):
    """A slave as its master sees it. Source: HAConnectionRuntimeInfo."""

    addr: str | None = None
    diff: Long = always(0)
    in_sync: bool = always(False)
    slave_ack_offset: Long = always(0)
    transfer_from_where: Long = always(0)
    transferred_byte_in_second: Long = always(0)


class SlaveSideState(Body):
    """A slave as it sees itself. Source: HAClientRuntimeInfo."""

    activated: bool | None = None
    last_read_timestamp: Long = always(0)
    last_write_timestamp: Long = always(0)
    master_addr: str | None = None
    master_flush_offset: Long = always(0)
    max_offset: Long = always(0)
    transferred_byte_in_second: Long = always(0)


class ReplicaStateBody(Body):
    """Reply body of `ReplicaState`."""

    ha_client_runtime_info: SlaveSideState | None = None
    ha_connection_info: list[SlaveState] = always([])
    in_sync_slave_nums: Long = always(0)
    master: bool = always(False)
    master_commit_log_max_offset: Long = always(0)


class AckItem(Body):
    """Acknowledged messages of one pop. Source: BatchAck.

    Attributes:
        bits: base64 of the bits of acknowledged offsets after `start_offset`, lowest first.
        retry: "1" if they came from the retry topic.
    """

    bits: str | None = msgspec.field(default=None, name="b")
    consumer_group: str | None = msgspec.field(default=None, name="c")
    invisible_time: Long = always(0, name="it")
    pop_time: Long = always(0, name="pt")
    queue_id: Long = always(0, name="q")
    retry: str | None = msgspec.field(default=None, name="r")
    revive_queue_id: Long = always(0, name="rq")
    start_offset: Long = always(0, name="so")
    topic: str | None = msgspec.field(default=None, name="t")


class AckBatchBody(Body):
    """Body of `AckMessages`."""

    acks: list[AckItem] = always([])
    broker_name: str | None = None
