"""Every metric, with the names and labels of RocketMQ 5 where it has them. Pure.

Source: BrokerMetricsConstant, DefaultStoreMetricsConstant, RemotingMetricsConstant and
ProxyMetricsConstant of RocketMQ 5.3. Those whose names begin with `sprocket_` are ours.
"""

from __future__ import annotations

from sprocket.metrics.model import Kind, Metric

_GAUGE, _COUNTER, _HISTOGRAM = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM
_STORAGE = ("storage_type", "storage_medium")
_OF_GROUP = ("consumer_group", "topic", "is_retry", "is_system")

# The broker.
PERMISSION = Metric(
    "rocketmq_broker_permission", _GAUGE, "The broker's permission: 4 read, 2 write, 6 both."
)
TOPICS = Metric("rocketmq_topic_number", _GAUGE, "Topics of the broker.")
GROUPS = Metric("rocketmq_consumer_group_number", _GAUGE, "Consumer groups of the broker.")
PRODUCERS = Metric(
    "rocketmq_producer_connections",
    _GAUGE,
    "Connected producers.",
    ("language", "version", "protocol_type"),
)
CONSUMERS = Metric(
    "rocketmq_consumer_connections",
    _GAUGE,
    "Connected consumers.",
    ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"),
)
MESSAGES_IN = Metric(
    "rocketmq_messages_in_total",
    _COUNTER,
    "Messages that were stored.",
    ("topic", "message_type", "is_system"),
)
BYTES_IN = Metric(
    "rocketmq_throughput_in_total",
    _COUNTER,
    "Bytes of the messages that were stored.",
    ("topic", "message_type", "is_system"),
    "bytes",
)
MESSAGES_OUT = Metric(
    "rocketmq_messages_out_total",
    _COUNTER,
    "Messages that consumers got.",
    ("topic", "consumer_group", "is_retry", "is_system"),
)
BYTES_OUT = Metric(
    "rocketmq_throughput_out_total",
    _COUNTER,
    "Bytes of the messages that consumers got.",
    ("topic", "consumer_group", "is_retry", "is_system"),
    "bytes",
)
SIZES = Metric(
    "rocketmq_message_size",
    _HISTOGRAM,
    "Bytes of the records of messages; those that are stored together count with their mean.",
    ("topic", "message_type", "is_system"),
    "bytes",
)
RPC_MS = Metric(
    "rocketmq_rpc_latency",
    _HISTOGRAM,
    "How long requests take until their replies are made.",
    ("protocol_type", "request_code", "response_code", "is_long_polling", "result"),
    "milliseconds",
)
NEW_TOPIC_MS = Metric(
    "rocketmq_topic_create_execution_time",
    _HISTOGRAM,
    "How long requests take that create or change topics.",
    ("invocation_status", "is_system"),
    "milliseconds",
)
NEW_GROUP_MS = Metric(
    "rocketmq_consumer_group_create_execution_time",
    _HISTOGRAM,
    "How long requests take that create or change consumer groups.",
    ("invocation_status",),
    "milliseconds",
)
COMMIT_S = Metric(
    "rocketmq_finish_message_latency",
    _HISTOGRAM,
    "The time between the sending of a transaction's message and its commit.",
    ("topic",),
    "seconds",
)
DEAD = Metric(
    "rocketmq_send_to_dlq_messages_total",
    _COUNTER,
    "Messages that became dead letters.",
    ("consumer_group", "is_system"),
)
LAG = Metric(
    "rocketmq_consumer_lag_messages",
    _GAUGE,
    "Messages that a group has not consumed, those in flight included.",
    _OF_GROUP,
)
LAG_MS = Metric(
    "rocketmq_consumer_lag_latency",
    _GAUGE,
    "How long the oldest of them has been stored.",
    _OF_GROUP,
    "milliseconds",
)
IN_FLIGHT = Metric(
    "rocketmq_consumer_inflight_messages",
    _GAUGE,
    "Messages that consumers got and have not finished.",
    _OF_GROUP,
)
QUEUEING_MS = Metric(
    "rocketmq_consumer_queueing_latency",
    _GAUGE,
    "How long the oldest message that no consumer got yet has been stored.",
    _OF_GROUP,
    "milliseconds",
)
READY = Metric(
    "rocketmq_consumer_ready_messages", _GAUGE, "Messages that no consumer got yet.", _OF_GROUP
)
QUEUE_LAG = Metric(
    "sprocket_consumer_queue_lag_messages",
    _GAUGE,
    "The same as rocketmq_consumer_lag_messages, for each queue.",
    ("consumer_group", "topic", "queue_id"),
)
HALVES = Metric(
    "rocketmq_half_messages", _GAUGE, "Messages of transactions that are undecided.", ("topic",)
)
COMMITS = Metric("rocketmq_commit_messages_total", _COUNTER, "Transactions that were committed.")
ROLLBACKS = Metric(
    "rocketmq_rollback_messages_total", _COUNTER, "Transactions that were rolled back."
)
REQUESTS = Metric(
    "sprocket_requests_total",
    _COUNTER,
    "Requests, by code and whether they succeeded.",
    ("request_code", "result"),
)
HELD_PULLS = Metric("sprocket_held_pulls", _GAUGE, "Pulls that wait for messages.")
QUOTA_REFUSED = Metric(
    "sprocket_quota_refused_total",
    _COUNTER,
    "Requests that a quota refused, by kind and limit.",
    ("kind", "limit"),
)
QUOTA_DELAYED = Metric(
    "sprocket_quota_delayed_total",
    _COUNTER,
    "Pulls and pops that a quota delayed, by kind and limit.",
    ("kind", "limit"),
)
REPLICA_LAG = Metric(
    "sprocket_replica_lag_bytes",
    _GAUGE,
    "How far a connected slave's log is behind.",
    ("slave", "in_sync"),
    "bytes",
)
# The store.
STORAGE = Metric(
    "rocketmq_storage_size",
    _GAUGE,
    "Bytes of the log's messages. RocketMQ's is all that is in use on the disk.",
    _STORAGE,
    "bytes",
)
DISK_USAGE = Metric(
    "sprocket_disk_usage_ratio", _GAUGE, "How full the disk of the store is, from 0 to 1."
)
UNFLUSHED = Metric(
    "rocketmq_storage_flush_behind_bytes",
    _GAUGE,
    "Bytes of the log that are not on the disk yet.",
    _STORAGE,
    "bytes",
)
UNDISPATCHED = Metric(
    "rocketmq_storage_dispatch_behind_bytes",
    _GAUGE,
    "Bytes of the log that are in no queue yet: always 0 here.",
    _STORAGE,
    "bytes",
)
KEPT_MS = Metric(
    "rocketmq_storage_message_reserve_time",
    _GAUGE,
    "The age of the oldest message.",
    _STORAGE,
    "milliseconds",
)
TIMING = Metric(
    "rocketmq_timing_messages",
    _GAUGE,
    "Messages that wait for their delivery time.",
    (*_STORAGE, "topic"),
)
TIMERS_IN = Metric(
    "rocketmq_timer_enqueue_total", _COUNTER, "Messages that began to wait.", _STORAGE
)
TIMERS_OUT = Metric(
    "rocketmq_timer_dequeue_total", _COUNTER, "Messages whose time had come.", _STORAGE
)
TIMER_LAG = Metric(
    "rocketmq_timer_enqueue_lag",
    _GAUGE,
    "Messages with a delivery time that do not wait in the timers yet.",
    _STORAGE,
)
TIMER_MS = Metric(
    "rocketmq_timer_dequeue_latency",
    _GAUGE,
    "How far delivery is behind the clock.",
    _STORAGE,
    "milliseconds",
)
TIMER_SNAPSHOT = Metric(
    "rocketmq_timer_message_snapshot",
    _GAUGE,
    "Messages with a delivery time by the seconds within which they are due, a day at most.",
    (*_STORAGE, "timer_bound_s"),
)
DELAY_S = Metric(
    "rocketmq_delay_message_latency",
    _HISTOGRAM,
    "How long messages with a delivery time are to wait.",
    (*_STORAGE, "topic"),
    "seconds",
)
BROKER: tuple[Metric, ...] = (
    PERMISSION, TOPICS, GROUPS, PRODUCERS, CONSUMERS, MESSAGES_IN, BYTES_IN, MESSAGES_OUT,
    BYTES_OUT, SIZES, RPC_MS, NEW_TOPIC_MS, NEW_GROUP_MS, COMMIT_S, DEAD, LAG, LAG_MS, IN_FLIGHT,
    QUEUEING_MS, READY, QUEUE_LAG, HALVES, COMMITS,
    ROLLBACKS, REQUESTS, HELD_PULLS, QUOTA_REFUSED, QUOTA_DELAYED, REPLICA_LAG, STORAGE,
    DISK_USAGE, UNFLUSHED, UNDISPATCHED,
    KEPT_MS, TIMING, TIMERS_IN, TIMERS_OUT, TIMER_LAG, TIMER_MS, TIMER_SNAPSHOT, DELAY_S,
)  # fmt: skip

# The name server.
ROUTED_TOPICS = Metric("sprocket_nameserver_topics", _GAUGE, "Topics that have a route.")
BROKERS = Metric(
    "sprocket_nameserver_brokers",
    _GAUGE,
    "Registered brokers, by whether they are masters.",
    ("is_master",),
)
NAMESERVER: tuple[Metric, ...] = (ROUTED_TOPICS, BROKERS)

# The proxy.
PROXY_UP = Metric("rocketmq_proxy_up", _GAUGE, "1 while the proxy serves.", ("proxy_mode",))
PROXY_CLIENTS = Metric(
    "sprocket_proxy_clients",
    _GAUGE,
    "Clients of the gRPC service.",
    ("language", "version", "is_consumer"),
)
PROXY: tuple[Metric, ...] = (PROXY_UP, PROXY_CLIENTS)

# The parent of several processes.
PROCESS_UP = Metric(
    "sprocket_process_up", _GAUGE, "Whether a process of `--processes` runs.", ("process",)
)
PROCESS_STARTS = Metric(
    "sprocket_process_starts_total",
    _COUNTER,
    "How often a process of `--processes` has started.",
    ("process",),
)
CONTAINER: tuple[Metric, ...] = (PROCESS_UP, PROCESS_STARTS)
