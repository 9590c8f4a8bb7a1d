"""What can be set on a producer or consumer, with Java's defaults.

Sizes are in bytes, times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sprocket.base.config import check, setting
from sprocket.base.errors import ConfigError
from sprocket.client.assign import Strategy, average, strategy_of
from sprocket.clientcore.envelope import JAVA_PACKING, NEW_TOPIC_QUEUES
from sprocket.protocol.signing import Signer

_KIB = 1024
_MIB = 1024 * 1024

#: Where name servers are looked for when none are given: the first variable that is set.
NAMESERVER_VARIABLES = ("SPROCKET_NAMESERVERS", "NAMESRV_ADDR")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What producers and consumers have in common; those that agree share their connections."""

    instance: str | None = setting(
        None,
        "Last part of the client id. Without it: process number and a random part, so that no two "
        "clients ever have the same id.",
        rocketmq="instanceName",
    )
    heartbeat_ms: int = setting(
        30_000,
        "How often brokers are told that we are here.",
        rocketmq="heartbeatBrokerInterval",
        minimum=100,
    )
    route_refresh_ms: int = setting(
        30_000,
        "How often routes are fetched again.",
        rocketmq="pollNameServerInterval",
        minimum=100,
    )
    call_timeout_ms: int = setting(
        3_000,
        "How long name servers and brokers may take for a question, sends and pulls excepted.",
        rocketmq="mqClientApiTimeout",
        minimum=1,
    )
    header: str = setting("json", "How request headers are written.", choices=("json", "binary"))
    access_key: str | None = setting(
        None, "Who we are, for brokers with access control.", rocketmq="accessKey"
    )
    secret_key: str | None = setting(
        None, "What requests are signed with.", rocketmq="secretKey", is_secret=True
    )
    security_token: str | None = setting(
        None, "What goes with keys that were lent for a time.", is_secret=True
    )

    def __post_init__(self) -> None:
        check(self)

    def signer(self) -> Signer | None:
        """What signs our requests; None if there are no keys.

        Raises:
            ConfigError: one key is given without the other.
        """
        return Signer.of(self.access_key, self.secret_key, self.security_token)

    def shared(self) -> ClientConfig:
        """The part of it that clients must agree on to share connections."""
        return ClientConfig(
            instance=self.instance,
            heartbeat_ms=self.heartbeat_ms,
            route_refresh_ms=self.route_refresh_ms,
            call_timeout_ms=self.call_timeout_ms,
            header=self.header,
            access_key=self.access_key,
            secret_key=self.secret_key,
            security_token=self.security_token,
        )


@dataclass(frozen=True, slots=True)
class ProducerConfig(ClientConfig):
    """Settings of a `Producer`."""

    send_timeout_ms: int = setting(
        3_000,
        "How long a send may take, all its attempts together.",
        rocketmq="sendMsgTimeout",
        minimum=1,
    )
    retries: int = setting(
        2,
        "How many times a failed send is tried again, at another broker if there is one.",
        rocketmq="retryTimesWhenSendFailed",
        minimum=0,
        maximum=16,
    )
    body_bytes_max: int = setting(
        JAVA_PACKING.body_bytes_max,
        "Largest body, before compression; not above what the broker takes.",
        rocketmq="maxMessageSize",
        minimum=1,
        maximum=15 * _MIB,
    )
    compression: str = setting(
        JAVA_PACKING.compression,
        "How large bodies are compressed.",
        choices=("none", "zlib", "lz4", "zstd"),
    )
    compression_level: int = setting(
        JAVA_PACKING.compression_level, "Effort, 1 to 9.", minimum=1, maximum=9
    )
    compress_over_bytes: int = setting(
        JAVA_PACKING.compress_over_bytes,
        "Bodies of at least this size are compressed, those of batches excepted.",
        rocketmq="compressMsgBodyOverHowmuch",
        minimum=1,
    )
    avoid_faults: bool = setting(
        True,
        "Whether brokers that failed or were slow are left out for a while where there are others.",
        rocketmq="sendLatencyFaultEnable",
    )
    new_topic_queues: int = setting(
        NEW_TOPIC_QUEUES,
        "How many queues a topic gets that is made by the first send.",
        rocketmq="defaultTopicQueueNums",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class FetchConfig(ClientConfig):
    """What consumers have in common that hold queues and fetch from them."""

    pull_batch: int = setting(
        32,
        "Messages that one pull asks for; brokers give 32 at most unless set otherwise.",
        rocketmq="pullBatchSize",
        minimum=1,
        maximum=1024,
    )
    pull_bytes_max: int = setting(
        256 * _KIB, "Bytes that one pull asks for.", rocketmq="pullBatchSizeInBytes", minimum=1
    )
    hold_ms: int = setting(
        15_000,
        "How long a broker holds a pull for which it has nothing.",
        rocketmq="brokerSuspendMaxTimeMillis",
        minimum=1,
    )
    pull_timeout_ms: int = setting(
        30_000,
        "How long a held pull may stay unanswered; must be above the hold time.",
        rocketmq="consumerTimeoutMillisWhenSuspend",
        minimum=1,
    )
    pull_retry_ms: int = setting(
        3_000,
        "Longest pause before the next pull after one that failed; the first is a tenth of it.",
        rocketmq="pullTimeDelayMillsWhenException",
        minimum=10,
    )
    window_count_max: int = setting(
        1000,
        "Unfinished messages of one queue above which nothing more is fetched from it.",
        rocketmq="pullThresholdForQueue",
        minimum=1,
    )
    window_bytes_max: int = setting(100 * _MIB, "The same in bytes of their bodies.", minimum=1)
    window_span_max: int = setting(
        2000,
        "The same in distance between the first and the last of them.",
        rocketmq="consumeConcurrentlyMaxSpan",
        minimum=1,
    )
    topic_count_max: int | None = setting(
        None,
        "Unfinished messages of one topic; its queues that are held share it evenly. None: only "
        "the limit of each queue counts.",
        rocketmq="pullThresholdForTopic",
        minimum=1,
    )
    topic_bytes_max: int | None = setting(None, "The same in bytes of their bodies.", minimum=1)
    commit_ms: int = setting(
        5_000,
        "How often positions are committed.",
        rocketmq="persistConsumerOffsetInterval",
        minimum=10,
    )
    rebalance_ms: int = setting(
        20_000, "How often queues are shared out anew.", rocketmq="waitInterval", minimum=10
    )
    #: Which member reads which queues: a function, or RocketMQ's name of one. See
    #: `sprocket.client.assign`; all members of a group need the same.
    assign: Strategy | str = field(default=average)

    def __post_init__(self) -> None:
        check(self)
        _check_hold(self.hold_ms, self.pull_timeout_ms)
        strategy_of(self.assign)


@dataclass(frozen=True, slots=True)
class ConsumerConfig(FetchConfig):
    """Settings of a `PushConsumer`."""

    concurrency: int = setting(
        20,
        "How many listener calls may be under way at once.",
        rocketmq="consumeThreadMin",
        minimum=1,
        maximum=10_000,
    )
    processes: int = setting(
        0,
        "Listeners that are plain functions run in so many processes of their own, which is also "
        "how many listener calls may be under way then; 0: in threads of this one.",
        minimum=0,
        maximum=256,
    )
    reconsume_max: int | None = setting(
        None,
        "How many times a failing message is tried again before it becomes a dead letter. None: 16 "
        "times; in ordered consumption without end.",
        rocketmq="maxReconsumeTimes",
        minimum=0,
    )
    consume_timeout_ms: int = setting(
        15 * 60_000,
        "How long a listener may have a message before it is given back to come again elsewhere; "
        "not in ordered consumption, nor when iterating. The listener is not interrupted.",
        minimum=10,
    )
    reoffer_ms: int = setting(
        5_000,
        "When a failed message can be given back to no broker: pause before the listener gets it "
        "again.",
        minimum=1,
    )
    suspend_ms: int = setting(
        1_000,
        "Ordered consumption: how long a queue rests after a failure.",
        rocketmq="suspendCurrentQueueTimeMillis",
        minimum=10,
    )
    suspend_longest_ms: int = setting(
        1_000,
        "Ordered consumption: what that pause grows to, twice as long each time that the same "
        "message fails. It does not grow unless this is above suspend_ms.",
        minimum=10,
    )
    auto_commit: bool = setting(
        True,
        "Ordered consumption: whether a message that the listener is through with counts at once. "
        "If not, it counts once the listener returns Outcome.COMMIT, and comes again after "
        "Outcome.ROLLBACK.",
        rocketmq="autoCommit",
    )
    lease_renewal_ms: int = setting(
        20_000,
        "Ordered consumption: how often leases on queues are renewed; they are trusted for 30 s.",
        rocketmq="rebalance.lockInterval",
        minimum=100,
        maximum=25_000,
    )
    alike_only: bool = setting(
        False,
        "Whether not to start in a group whose members, at this moment, subscribe otherwise. "
        "Brokers keep one subscription of a group and topic, the newest.",
    )
    drain_ms: int = setting(
        10_000, "How long stopping waits for listener calls under way.", minimum=0
    )
    offsets_folder: str | None = setting(
        None,
        "Broadcasting: where positions are kept on this machine. Without it ~/.rocketmq_offsets, "
        "as for Java clients.",
        rocketmq="rocketmq.client.localOffsetStoreDir",
    )


@dataclass(frozen=True, slots=True)
class LitePullConfig(FetchConfig):
    """Settings of a `LitePullConsumer`."""

    auto_commit: bool = setting(
        True,
        "Whether positions are committed by themselves: what a poll returned, once the next one "
        "is asked for.",
        rocketmq="autoCommit",
    )
    poll_batch: int = setting(
        32, "Messages that one poll returns at most.", minimum=1, maximum=100_000
    )


@dataclass(frozen=True, slots=True)
class PullConfig(ClientConfig):
    """Settings of a `PullConsumer`."""

    pull_bytes_max: int = setting(256 * _KIB, "Bytes that one pull asks for.", minimum=1)
    hold_ms: int = setting(
        20_000,
        "How long a broker holds a blocking pull for which it has nothing.",
        rocketmq="brokerSuspendMaxTimeMillis",
        minimum=1,
    )
    pull_timeout_ms: int = setting(
        30_000,
        "How long a blocking pull may stay unanswered; must be above the hold time.",
        rocketmq="consumerTimeoutMillisWhenSuspend",
        minimum=1,
    )

    def __post_init__(self) -> None:
        check(self)
        _check_hold(self.hold_ms, self.pull_timeout_ms)


def _check_hold(hold_ms: int, pull_timeout_ms: int) -> None:
    """A held pull is silent by design, so whoever gives up sooner throws answers away."""
    if pull_timeout_ms <= hold_ms:
        raise ConfigError(f"pull_timeout_ms ({pull_timeout_ms}) must be above hold_ms ({hold_ms})")


def nameserver_addresses(
    given: str | Iterable[str] | None, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Name servers as a sorted tuple of `host:port`.

    Args:
        given: `host:port`, several with `;` or `,` between them or as a list. None: from the
            environment.

    Raises:
        ConfigError: none are given and none are set, or one has no port.
    """
    found = given
    if found is None:
        found = next((environment[v] for v in NAMESERVER_VARIABLES if environment.get(v)), "")
    pieces = [found] if isinstance(found, str) else found
    pieces = list(pieces) if isinstance(pieces, Iterable) else [pieces]
    if not all(isinstance(each, str) for each in pieces):
        raise ConfigError(
            f"name servers are host:port as a text, or a list of those, not {found!r}"
        )
    texts = {text.strip() for piece in pieces for text in piece.replace(";", ",").split(",")}
    addresses = tuple(sorted(texts - {""}))
    if not addresses:
        raise ConfigError(
            f"no name server is given, and none is set in {' or '.join(NAMESERVER_VARIABLES)}"
        )
    for address in addresses:
        host, _, port = address.rpartition(":")
        is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
        if not host or "/" in host or not is_port:
            raise ConfigError(f"a name server is host:port, not {address!r}")
    return addresses
