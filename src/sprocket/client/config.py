"""The settings of producers and consumers. Their defaults are those of the Java client.

Sizes are in bytes, times in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sprocket.base.config import check_values, setting
from sprocket.base.errors import ConfigError
from sprocket.client.assign import Strategy, average, strategy_of
from sprocket.clientcore.envelope import JAVA_PACKING, NEW_TOPIC_QUEUES
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.remoting.access_config import AccessConfig

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClientConfig(AccessConfig):
    """Settings of all producers and consumers. Clients with equal settings share connections."""

    instance: str | None = setting(
        None,
        "Last part of the client id. None: the process number and a random part, so that no two "
        "clients have the same id.",
        rocketmq="instanceName",
    )
    heartbeat_ms: int = setting(
        30_000,
        "How often heartbeats are sent to the brokers.",
        rocketmq="heartbeatBrokerInterval",
        minimum=100,
    )
    route_refresh_ms: int = setting(
        30_000,
        "How often routes are fetched from the name servers.",
        rocketmq="pollNameServerInterval",
        minimum=100,
    )
    call_timeout_ms: int = setting(
        3_000,
        "How long a call to a name server or broker may take, sends and pulls excepted.",
        rocketmq="mqClientApiTimeout",
        minimum=1,
    )
    header: str = setting("json", "Encoding of request headers.", choices=("json", "binary"))
    spans: str = setting(
        "auto",
        "Whether OpenTelemetry gets spans: `auto`: if the program has set a tracer provider.",
        choices=("auto", "on", "off"),
    )

    def shared(self) -> ClientConfig:
        """Returns the settings that must be equal for clients to share connections."""
        return ClientConfig(
            instance=self.instance,
            heartbeat_ms=self.heartbeat_ms,
            route_refresh_ms=self.route_refresh_ms,
            call_timeout_ms=self.call_timeout_ms,
            header=self.header,
            **self.access_settings(),
        )


@dataclass(frozen=True, slots=True)
class ProducerConfig(ClientConfig):
    """Settings of a `Producer`."""

    send_timeout_ms: int = setting(
        3_000,
        "How long a send may take, including all its attempts.",
        rocketmq="sendMsgTimeout",
        minimum=1,
    )
    retries: int = setting(
        2,
        "How many times a failed send is repeated, at another broker if there is one. Refusals of "
        "a broker that is not the master, or is busy, do not count; 0 repeats none of them either.",
        rocketmq="retryTimesWhenSendFailed",
        minimum=0,
        maximum=16,
    )
    body_bytes_max: int = setting(
        JAVA_PACKING.body_bytes_max,
        "Largest body, before compression; must not be above the broker's own limit.",
        rocketmq="maxMessageSize",
        minimum=1,
        maximum=15 * _MIB,
    )
    compression: str = setting(
        JAVA_PACKING.compression,
        "Compression of large bodies.",
        choices=("none", "zlib", "lz4", "zstd"),
    )
    compression_level: int = setting(
        JAVA_PACKING.compression_level,
        "Level of compression: 1 is the fastest, 9 gives the smallest bodies.",
        minimum=1,
        maximum=9,
    )
    compress_over_bytes: int = setting(
        JAVA_PACKING.compress_over_bytes,
        "Bodies of at least this size are compressed, except those of batches.",
        rocketmq="compressMsgBodyOverHowmuch",
        minimum=1,
    )
    batch_count_max: int = setting(
        256,
        "Most messages in one request of `send_many`. 1 sends each alone, for brokers that take no "
        "batches.",
        minimum=1,
        maximum=10_000,
    )
    batch_bytes_max: int = setting(
        512 * _KIB,
        "Most bytes in one request of several messages of `send_many`; never more than "
        "body_bytes_max.",
        minimum=1,
        maximum=15 * _MIB,
    )
    avoid_faults: bool = setting(
        True,
        "Whether brokers that failed or were slow are avoided for a while if there are others.",
        rocketmq="sendLatencyFaultEnable",
    )
    new_topic_queues: int = setting(
        NEW_TOPIC_QUEUES,
        "How many queues a topic gets if the first send creates it.",
        rocketmq="defaultTopicQueueNums",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class FetchConfig(ClientConfig):
    """Settings of consumers that hold queues and fetch from them in the background."""

    pull_batch: int = setting(
        32,
        "Messages that one pull requests; brokers return 32 at most by default.",
        rocketmq="pullBatchSize",
        minimum=1,
        maximum=1024,
    )
    pull_bytes_max: int = setting(
        256 * _KIB, "Bytes that one pull requests.", rocketmq="pullBatchSizeInBytes", minimum=1
    )
    hold_ms: int = setting(
        15_000,
        "How long a broker holds a pull while it has no messages for it.",
        rocketmq="brokerSuspendMaxTimeMillis",
        minimum=1,
    )
    pull_timeout_ms: int = setting(
        30_000,
        "How long a held pull may take; must be above hold_ms.",
        rocketmq="consumerTimeoutMillisWhenSuspend",
        minimum=1,
    )
    pull_retry_ms: int = setting(
        3_000,
        "Longest pause after a pull that failed; the first pause is a tenth of it.",
        rocketmq="pullTimeDelayMillsWhenException",
        minimum=10,
    )
    window_count_max: int = setting(
        1000,
        "Unfinished messages of one queue at which fetching from it stops.",
        rocketmq="pullThresholdForQueue",
        minimum=1,
    )
    window_bytes_max: int = setting(
        100 * _MIB,
        "Bytes of bodies of one queue's unfinished messages at which fetching from it stops.",
        minimum=1,
    )
    window_span_max: int = setting(
        2000,
        "Distance in offsets between the first and the last unfinished message of one queue above "
        "which fetching from it stops.",
        rocketmq="consumeConcurrentlyMaxSpan",
        minimum=1,
    )
    topic_count_max: int | None = setting(
        None,
        "Limit for the unfinished messages of one topic; the queues of the topic that are held "
        "share it evenly. None: only the limit of each queue applies.",
        rocketmq="pullThresholdForTopic",
        minimum=1,
    )
    topic_bytes_max: int | None = setting(
        None, "Like topic_count_max, in bytes of their bodies.", minimum=1
    )
    commit_ms: int = setting(
        5_000,
        "How often offsets are committed.",
        rocketmq="persistConsumerOffsetInterval",
        minimum=10,
    )
    rebalance_ms: int = setting(
        20_000, "How often the queues are rebalanced.", rocketmq="waitInterval", minimum=10
    )
    #: The assignment strategy: a function, or the name of one in RocketMQ. See
    #: `sprocket.client.assign`; all members of a group need the same one.
    assign: Strategy | str = field(default=average)

    def __post_init__(self) -> None:
        check_values(self)
        _check_hold(self.hold_ms, self.pull_timeout_ms)
        strategy_of(self.assign)


@dataclass(frozen=True, slots=True)
class ConsumerConfig(FetchConfig):
    """Settings of a `PushConsumer`."""

    concurrency: int = setting(
        20,
        "How many listener calls may run at once.",
        rocketmq="consumeThreadMin",
        minimum=1,
        maximum=10_000,
    )
    processes: int = setting(
        0,
        "In how many processes of their own listeners run that are plain functions; then this is "
        "also the limit of listener calls at once. 0: they run in threads of this process.",
        minimum=0,
        maximum=256,
    )
    reconsume_max: int | None = setting(
        None,
        "How many times a message that fails is redelivered before it becomes a dead letter. None: "
        "16 times; in ordered consumption without limit.",
        rocketmq="maxReconsumeTimes",
        minimum=0,
    )
    consume_timeout_ms: int = setting(
        15 * 60_000,
        "How long a listener may take for a message before the message is sent back to be "
        "redelivered. The listener is not interrupted. Not used in ordered consumption, nor when "
        "iterating.",
        minimum=10,
    )
    reoffer_ms: int = setting(
        5_000,
        "Pause before the listener gets a failed message again that could not be sent back to any "
        "broker.",
        minimum=1,
    )
    suspend_ms: int = setting(
        1_000,
        "Ordered consumption: how long a queue pauses after a failure.",
        rocketmq="suspendCurrentQueueTimeMillis",
        minimum=10,
    )
    suspend_longest_ms: int = setting(
        1_000,
        "Ordered consumption: the longest pause. The pause doubles each time the same message "
        "fails, if this is above suspend_ms; otherwise it does not grow.",
        minimum=10,
    )
    auto_commit: bool = setting(
        True,
        "Ordered consumption: whether a message is consumed as soon as the listener returns. If "
        "not, messages are consumed when the listener returns Outcome.COMMIT, and are redelivered "
        "after Outcome.ROLLBACK.",
        rocketmq="autoCommit",
    )
    lease_renewal_ms: int = setting(
        20_000,
        "Ordered consumption: how often leases on queues are renewed; each is trusted for 30 s.",
        rocketmq="rebalance.lockInterval",
        minimum=100,
        maximum=25_000,
    )
    alike_only: bool = setting(
        False,
        "Whether the start fails if members that are in the group now have other subscriptions. "
        "Brokers keep one subscription for each group and topic, the newest.",
    )
    invisible_ms: int = setting(
        60_000,
        "Pops: for how long messages that were popped are invisible to the rest of the group. It "
        "is renewed while they wait here or a listener has them; what a member that dies had comes "
        "again after this time.",
        rocketmq="popInvisibleTime",
        minimum=2_000,
    )
    pop_batch: int = setting(
        POP_COUNT_MAX,
        "Pops: messages that one pop requests.",
        rocketmq="popBatchNums",
        minimum=1,
        maximum=POP_COUNT_MAX,
    )
    pop_unfinished_max: int = setting(
        96,
        "Pops: unfinished messages of one topic at one broker at which popping stops.",
        rocketmq="popThresholdForQueue",
        minimum=1,
        maximum=10_000,
    )
    drain_ms: int = setting(
        10_000, "How long closing waits for listener calls that are running.", minimum=0
    )
    offsets_folder: str | None = setting(
        None,
        "Broadcasting: folder for the offsets on this machine. None: ~/.rocketmq_offsets, as for "
        "Java clients.",
        rocketmq="rocketmq.client.localOffsetStoreDir",
    )


@dataclass(frozen=True, slots=True)
class LitePullConfig(FetchConfig):
    """Settings of a `LitePullConsumer`."""

    auto_commit: bool = setting(
        True,
        "Whether offsets are committed automatically. The messages of a poll count as consumed "
        "when the next poll begins.",
        rocketmq="autoCommit",
    )
    poll_batch: int = setting(
        32, "How many messages one poll returns at most.", minimum=1, maximum=100_000
    )


@dataclass(frozen=True, slots=True)
class PullConfig(ClientConfig):
    """Settings of a `PullConsumer`."""

    pull_bytes_max: int = setting(256 * _KIB, "Bytes that one pull requests.", minimum=1)
    hold_ms: int = setting(
        20_000,
        "How long a broker holds a blocking pull while it has no messages for it.",
        rocketmq="brokerSuspendMaxTimeMillis",
        minimum=1,
    )
    pull_timeout_ms: int = setting(
        30_000,
        "How long a blocking pull may take; must be above hold_ms.",
        rocketmq="consumerTimeoutMillisWhenSuspend",
        minimum=1,
    )

    def __post_init__(self) -> None:
        check_values(self)
        _check_hold(self.hold_ms, self.pull_timeout_ms)


def _check_hold(hold_ms: int, pull_timeout_ms: int) -> None:
    """Raises ConfigError if a pull would time out while the broker may still hold it."""
    if pull_timeout_ms <= hold_ms:
        raise ConfigError(f"pull_timeout_ms ({pull_timeout_ms}) must be above hold_ms ({hold_ms})")
