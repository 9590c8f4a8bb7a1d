"""The settings of a proxy, with the names of RocketMQ's where it has them.

Source of the names: ProxyConfig of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.auth.first_users import JSON_KEYS, keys_form
from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """Settings of a proxy. Times in milliseconds, sizes in bytes."""

    host: str = setting(
        "127.0.0.1",
        "Address to listen at; 0.0.0.0 or :: opens it to other machines.",
        form=forms.host,
    )
    port: int = setting(
        8081,
        "TCP port to listen at; 0 takes a free one.",
        rocketmq="grpcServerPort",
        minimum=0,
        maximum=65535,
    )
    enabled: bool = setting(True, "Whether `sprocket standalone` runs a proxy beside its broker.")
    nameservers: tuple[str, ...] = setting(
        (),
        "Name servers that know the brokers.",
        rocketmq="namesrvAddr",
        form=forms.addresses,
    )
    call_timeout_ms: int = setting(3_000, "How long a broker may take for a request.", minimum=1)
    body_bytes_max: int = setting(
        4 << 20, "Largest body of a message.", rocketmq="maxMessageSize", minimum=1
    )
    check_empty_body: bool = setting(
        True, "Whether empty bodies are refused.", rocketmq="enableMessageBodyEmptyCheck"
    )
    property_bytes_max: int = setting(
        16 << 10,
        "Bytes of a message's properties, tag and keys at most.",
        rocketmq="maxUserPropertySize",
        minimum=1,
    )
    properties_max: int = setting(
        128, "Properties of a message at most.", rocketmq="userPropertyMaxNum", minimum=1
    )
    message_group_bytes_max: int = setting(
        64,
        "A message group has fewer bytes than this.",
        rocketmq="maxMessageGroupSize",
        minimum=0,
    )
    delay_ms_max: int = setting(
        86_400_000,
        "How far ahead the delivery time of a message may be; 0 for any.",
        rocketmq="maxDelayTimeMills",
        minimum=0,
    )
    transaction_check_seconds_max: int = setting(
        3_600,
        "The longest time before a transaction is first checked that a message may ask for; 0 for "
        "any.",
        rocketmq="maxTransactionRecoverySecond",
        minimum=0,
    )
    check_types: bool = setting(
        True,
        "Whether a topic takes only messages of its type.",
        rocketmq="enableTopicMessageTypeCheck",
    )
    producer_attempts_max: int = setting(
        3, "How often producers try to send.", rocketmq="grpcClientProducerMaxAttempts", minimum=1
    )
    producer_pause_ms: int = setting(
        10,
        "Their pause before the second attempt.",
        rocketmq="grpcClientProducerBackoffInitialMillis",
        minimum=0,
    )
    producer_pause_ms_max: int = setting(
        1_000,
        "Their longest pause between attempts.",
        rocketmq="grpcClientProducerBackoffMaxMillis",
        minimum=0,
    )
    producer_pause_factor: int = setting(
        2,
        "By how much each of these pauses is longer than the one before.",
        rocketmq="grpcClientProducerBackoffMultiplier",
        minimum=1,
    )
    receive_count_max: int = setting(
        32,
        "How many messages consumers ask for at once.",
        rocketmq="grpcClientConsumerLongPollingBatchSize",
        minimum=1,
        maximum=32,
    )
    hold_ms_min: int = setting(
        5_000,
        "A receive waits for messages at least so long.",
        rocketmq="grpcClientConsumerMinLongPollingTimeoutMillis",
        minimum=1,
    )
    hold_ms_max: int = setting(
        20_000,
        "A receive waits for messages at most so long.",
        rocketmq="grpcClientConsumerMaxLongPollingTimeoutMillis",
        minimum=1,
    )
    invisible_ms_min: int = setting(
        10_000,
        "The shortest invisible time that a receive may ask for.",
        rocketmq="minInvisibleTimeMillsForRecv",
        minimum=1,
    )
    invisible_ms_max: int = setting(
        43_200_000,
        "The longest invisible time.",
        rocketmq="maxInvisibleTimeMills",
        minimum=1,
    )
    renew: bool = setting(
        True,
        "Whether messages stay invisible while the client that asked for that lives.",
        rocketmq="enableProxyAutoRenew",
    )
    renewed_invisible_ms: int = setting(
        60_000,
        "Their first invisible time.",
        rocketmq="defaultInvisibleTimeMills",
        minimum=1,
    )
    renew_ahead_ms: int = setting(
        10_000,
        "How long before its end an invisible time is renewed.",
        rocketmq="renewAheadTimeMillis",
        minimum=1,
    )
    renew_scan_ms: int = setting(
        5_000,
        "Pause between two looks for invisible times that end soon.",
        rocketmq="renewSchedulePeriodMillis",
        minimum=1,
    )
    renew_ms_max: int = setting(
        10_800_000,
        "After so long a message is not renewed any more.",
        rocketmq="renewMaxTimeMillis",
        minimum=1,
    )
    renew_failures_max: int = setting(
        3,
        "A message that cannot be renewed so often in a row is left alone.",
        rocketmq="maxRenewRetryTimes",
        minimum=1,
    )
    given_back_ms: int = setting(
        1_000,
        "When messages of a client that is gone become visible.",
        rocketmq="invisibleTimeMillisWhenClear",
        minimum=1,
    )
    client_expiry_ms: int = setting(
        120_000,
        "A client that sends no heartbeat for so long is gone.",
        rocketmq="channelExpiredTimeout",
        minimum=1_000,
    )
    route_refresh_ms: int = setting(
        20_000,
        "How old routes, and settings of topics and groups, get before they are asked for anew.",
        minimum=100,
    )
    lite_topic_max: int = setting(
        64,
        "The most characters of a lite topic's name; brokers accept no more than 64.",
        rocketmq="maxLiteTopicSize",
        minimum=1,
        maximum=64,
    )
    clients_max: int = setting(20_000, "Clients with settings at most.", minimum=1)
    connection_clients_max: int = setting(
        1_000,
        "Clients of one connection at most: each program has its own, but programs behind a load "
        "balancer may share one.",
        minimum=1,
    )
    settings_bytes_max: int = setting(
        64 << 20, "Bytes of the settings of all clients at most.", minimum=1 << 16
    )
    receives_max: int = setting(20_000, "Receives that wait at most.", minimum=1)
    renewals_max: int = setting(
        200_000,
        "Messages that are kept invisible at most, of all clients; a tenth of them of one client.",
        minimum=1,
    )
    request_bytes_max: int = setting(
        16 << 20,
        "Largest request that is accepted.",
        rocketmq="grpcMaxInboundMessageSize",
        minimum=1 << 16,
        maximum=1 << 30,
    )
    authentication: bool = setting(
        False,
        "Whether each call must be signed with the keys of a user. A proxy in the process of its "
        "broker follows the broker.",
        rocketmq="authenticationEnabled",
    )
    authorization: bool = setting(
        False,
        "Whether the user must have the rights that its call needs.",
        rocketmq="authorizationEnabled",
    )
    inner_keys: str | None = setting(
        None,
        f"Keys of a super user, with which it asks brokers for users and signs its requests: "
        f"{JSON_KEYS}.",
        rocketmq="innerClientAuthenticationCredentials",
        form=keys_form,
        is_secret=True,
    )
    user_refresh_seconds: int = setting(
        20,
        "How old users and their policies get before they are asked for anew.",
        rocketmq="userCacheRefreshSeconds",
        minimum=1,
    )
    users_max: int = setting(
        20_000, "Users that are remembered at most.", rocketmq="userCacheMaxNum", minimum=1
    )
    drain_ms: int = setting(
        3_000, "How long calls in progress may take when the proxy stops.", minimum=0
    )

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with these settings together."""
        if self.authorization and not self.authentication:
            yield Conflict(
                ("authorization", "authentication"),
                "(authorizationEnabled) needs proxy.authentication (authenticationEnabled): the "
                "rights of a user who need not prove to be it protect nothing",
            )
