"""The settings of a broker, with RocketMQ's names where it has them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.broker.elector_config import ElectorConfig
from sprocket.quotas.rules import quotas


@dataclass(frozen=True, slots=True)
class BrokerConfig(ElectorConfig):
    """Settings of a broker. Times in milliseconds, sizes in bytes."""

    cluster: str = setting(
        "DefaultCluster",
        "Cluster that the broker belongs to.",
        rocketmq="brokerClusterName",
        form=forms.name,
    )
    name: str = setting(
        "broker-a",
        "Name of the broker; a master and its slaves share it.",
        rocketmq="brokerName",
        form=forms.name,
    )
    host: str = setting(
        "127.0.0.1",
        "Address to listen at; 0.0.0.0 or :: opens it to other machines.",
        rocketmq="bindAddress",
        form=forms.host,
    )
    port: int = setting(
        10911,
        "TCP port to listen at; 0 takes a free one.",
        rocketmq="listenPort",
        minimum=0,
        maximum=65535,
    )
    advertised_host: str | None = setting(
        None,
        "Address that clients connect to; by default `host`, if that is a single address.",
        rocketmq="brokerIP1",
        form=forms.host,
    )
    nameservers: tuple[str, ...] = setting(
        (),
        "Name servers to register at, each `host:port`.",
        rocketmq="namesrvAddr",
        form=forms.addresses,
    )
    container: str | None = setting(
        None,
        "The container of brokers that started this one: it registers there too, and the container "
        "makes new topics at the others. A container sets it.",
        form=forms.address,
    )
    permission: int = setting(
        6,
        "4 lets consumers read, 2 producers write, 6 both.",
        rocketmq="brokerPermission",
        minimum=0,
        maximum=7,
    )
    auto_create_topics: bool = setting(
        True,
        "Whether a send to an unknown topic creates it.",
        rocketmq="autoCreateTopicEnable",
    )
    template_queues: int = setting(
        8,
        "Queues that a topic created by a send has at most.",
        rocketmq="defaultTopicQueueNums",
        minimum=1,
        maximum=1024,
    )
    mixed_message_type: bool = setting(
        False,
        "Whether a topic may be made for messages of all types (`message.type=MIXED`).",
        rocketmq="enableMixedMessageType",
    )
    auto_create_groups: bool = setting(
        True,
        "Whether an unknown consumer group is created when it is first used.",
        rocketmq="autoCreateSubscriptionGroup",
    )
    cluster_topic: bool = setting(
        True,
        "Whether the topic named like the cluster may be read and written.",
        rocketmq="clusterTopicEnable",
    )
    broker_topic: bool = setting(
        True,
        "Whether the topic named like the broker may be read and written.",
        rocketmq="brokerTopicEnable",
    )
    trace_topic: bool = setting(
        False, "Whether the topic of message traces is created.", rocketmq="traceTopicEnable"
    )
    trace_topic_name: str = setting(
        "RMQ_SYS_TRACE_TOPIC",
        "Name of the topic of message traces.",
        rocketmq="msgTraceTopicName",
        form=forms.name,
    )
    region: str = setting(
        "DefaultRegion",
        "Region that is written into each message.",
        rocketmq="regionId",
        form=forms.name,
    )
    trace_on: bool = setting(
        True, "Whether the broker asks clients to write traces.", rocketmq="traceOn"
    )
    kernel: bool = setting(
        True,
        "Whether plain sends are taken by the native kernel, if the package sprocketmq-native is "
        "installed.",
    )
    notify_members: bool = setting(
        True,
        "Whether consumers are notified at once when a member joins or leaves their group.",
        rocketmq="notifyConsumerIdsChangedEnable",
    )
    connections_max: int = setting(
        0,
        "The most connections at the same time; further ones are refused. 0: a quarter of the "
        "files that the process may have open (ulimit -n).",
        minimum=0,
        maximum=1_000_000,
    )
    client_expiry_ms: int = setting(
        120_000,
        "A client that sends no heartbeat for so long is removed.",
        rocketmq="channelExpiredTimeout",
        minimum=1_000,
    )
    client_scan_ms: int = setting(
        10_000, "Pause between two scans for silent clients.", minimum=100, maximum=600_000
    )
    lock_lease_ms: int = setting(
        60_000,
        "How long an ordered consumer keeps its lock on a queue without renewing it.",
        minimum=1_000,
    )
    long_polling: bool = setting(
        True,
        "Whether a pull that finds no message waits as long as its client allows.",
        rocketmq="longPollingEnable",
    )
    short_polling_ms: int = setting(
        1_000,
        "How long such a pull waits if long polling is off.",
        rocketmq="shortPollingTimeMills",
        minimum=1,
    )
    held_pulls_max: int = setting(
        100_000,
        "Pulls of all clients together that may wait at the same time; further ones are refused at "
        "once: the broker is busy. Each takes about 3.5 KiB of memory.",
        rocketmq="pullThreadPoolQueueCapacity",
        minimum=1,
    )
    pull_count_max: int = setting(
        32,
        "Messages in one reply to a pull that does not state how many bytes it accepts.",
        rocketmq="maxTransferCountOnMessageInMemory",
        minimum=1,
        maximum=10_000,
    )
    pull_bytes_max: int = setting(
        256 * 1024,
        "Bytes in one reply to such a pull; a single larger message is sent alone.",
        rocketmq="maxTransferBytesOnMessageInMemory",
        minimum=1024,
    )
    pull_asked_count_max: int = setting(
        8192,
        "Messages in one reply to a pull that states how many bytes it accepts.",
        minimum=1,
        maximum=10_000,
    )
    pull_asked_bytes_max: int = setting(
        1024 * 1024, "Bytes in one reply to such a pull.", minimum=1024
    )
    lite_pull: bool = setting(
        True, "Whether lite pull consumers may pull.", rocketmq="litePullMessageEnable"
    )
    sql_filters: bool = setting(
        True,
        "Whether consumers may filter messages by SQL92 expressions over their properties.",
        rocketmq="enablePropertyFilter",
    )
    filter_workers: int = setting(
        0,
        "Processes that run consumers' filters in Python, one for each filter in use; 0: none.",
        rocketmq="filterServerNums",
        minimum=0,
        maximum=256,
    )
    filter_uploaders: tuple[str, ...] = setting(
        ("127.0.0.1/32", "::1/128"),
        "Networks whose clients may upload filters in Python without a signature.",
        form=forms.networks,
    )
    filter_secret: str | None = setting(
        None, "Secret; an upload signed with it is accepted from any address.", is_secret=True
    )
    filter_memory_bytes: int = setting(
        128 << 20, "Address space of a filter's process, at most.", minimum=64 << 20
    )
    filter_cpu_ms: int = setting(
        1_000,
        "CPU time that a filter may take for a batch of at most 128 messages.",
        minimum=10,
        maximum=60_000,
    )
    filter_failures_max: int = setting(
        3, "Successive failures after which a filter is switched off.", minimum=1
    )
    filter_pause_ms: int = setting(
        1_000,
        "Pause after a filter's first failure; it doubles up to a minute.",
        minimum=1,
        maximum=60_000,
    )
    filter_isolation: str = setting(
        "kernel",
        "How filters are confined: `kernel` forbids them system calls, on Linux; `limits` only "
        "limits their resources, so filters must be trusted.",
        choices=("kernel", "limits"),
    )
    server_side_reset: bool = setting(
        True,
        "Whether only replies to pulls notify consumers of a reset; if not, a request does too.",
        rocketmq="useServerSideResetOffset",
    )
    flush_timeout_ms: int = setting(
        5_000,
        "With SYNC_FLUSH, how long a send waits for the flush to the disk.",
        rocketmq="syncFlushTimeout",
        minimum=1,
    )
    offset_save_ms: int = setting(
        5_000,
        "Pause between two saves of the consumers' offsets.",
        rocketmq="flushConsumerOffsetInterval",
        minimum=10,
        maximum=600_000,
    )
    delay_save_ms: int = setting(
        10_000,
        "Pause between two saves of the progress of delayed messages.",
        rocketmq="flushDelayOffsetInterval",
        minimum=10,
        maximum=600_000,
    )
    registration_ms: int = setting(
        30_000,
        "Pause between two registrations at the name servers.",
        rocketmq="registerNameServerPeriod",
        minimum=1_000,
        maximum=60_000,
    )
    registration_timeout_ms: int = setting(
        24_000,
        "How long a name server may take to answer a registration.",
        rocketmq="registerBrokerTimeoutMills",
        minimum=100,
    )
    reject_transactions: bool = setting(
        False,
        "Whether half messages of transactions are refused.",
        rocketmq="rejectTransactionMessage",
    )
    transaction_timeout_ms: int = setting(
        6_000,
        "How long a producer may take to end a transaction before it is checked.",
        rocketmq="transactionTimeOut",
        minimum=100,
    )
    transaction_check_ms: int = setting(
        30_000,
        "Pause between two checks of one transaction.",
        rocketmq="transactionCheckInterval",
        minimum=100,
    )
    transaction_checks_max: int = setting(
        15,
        "Checks after which a transaction that is still undecided is parked.",
        rocketmq="transactionCheckMax",
        minimum=1,
        maximum=100_000,
    )
    transactions_max: int = setting(
        500_000, "Undecided transactions at most; further half messages are refused.", minimum=1
    )
    recall: bool = setting(
        True,
        "Whether messages that wait for their delivery time can be recalled.",
        rocketmq="recallMessageEnable",
    )
    topics_max: int = setting(50_000, "Topics at most.", minimum=32)
    groups_max: int = setting(50_000, "Consumer groups at most.", minimum=32)
    members_max: int = setting(
        100_000, "Producers and consumers connected at the same time, at most.", minimum=1
    )
    offsets_max: int = setting(
        2_000_000, "Consumer offsets at most: one per group and queue.", minimum=1
    )
    quotas: tuple[str, ...] = setting(
        (),
        "What a client, user, address, topic or group may take: rules such as "
        "`client * requests=1000`.",
        form=quotas,
    )
    frame_bytes_max: int = setting(
        16 << 20, "Largest request that is accepted.", minimum=1 << 16, maximum=1 << 30
    )
    unfinished_bytes_max: int = setting(
        128 << 20,
        "Bytes of incomplete requests over all connections, at most; above it those that have been "
        "incomplete for longest are closed. One request may always be as large as frame_bytes_max.",
        minimum=1 << 20,
    )
    drain_ms: int = setting(
        5_000, "How long requests in flight may take when the broker stops.", minimum=0
    )

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        if is_anywhere(self.host) and not self.advertised_host:
            yield Conflict(
                ("host", "advertised_host"),
                f"(bindAddress) {self.host!r} opens the broker to every address: "
                "broker.advertised_host (brokerIP1) must name the one that clients connect to",
            )
        if self.advertised_host and is_anywhere(self.advertised_host):
            yield Conflict(
                ("advertised_host",),
                f"(brokerIP1) is the one address that clients connect to, not "
                f"{self.advertised_host!r}, which is every address",
            )
        yield from self.account_conflicts()
        yield from self.copies_conflicts()
        if self.elector_place is None:
            yield from self.role_conflicts()
        else:
            yield from self.elector_conflicts()
        for name in ("cluster", "name"):
            if self.elector_place and "#" in getattr(self, name):
                yield Conflict(
                    (name, "elector"),
                    f"is {getattr(self, name)!r}: with an elector, names of a cluster and its "
                    "brokers have no # in them",
                )

    def remarks(self) -> Iterator[str]:
        """What whoever starts the broker should know."""
        # Java's broker listens at all addresses, so a broker.conf may set only the advertised one.
        if is_loopback(self.host) and not is_loopback(self.advertised_host or self.host):
            yield (
                f"clients get the address {self.advertised_host} (brokerIP1), but the broker "
                f"listens only at {self.host}; --host 0.0.0.0 opens it to other machines"
            )


def is_anywhere(host: str) -> bool:
    """Whether a server that listens at `host` listens at every address."""
    return host.strip().strip("[]") in ("", "0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    try:
        return ipaddress.ip_address(host.strip().strip("[]")).is_loopback
    except ValueError:
        return host.strip() == "localhost"
