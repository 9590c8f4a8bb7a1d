"""Settings of clients: what they say of themselves, and what the proxy answers. Pure.

A client sends its settings when it starts and every five minutes, and waits for the answer: the
same with the values that the proxy, or its consumer group, decides.
Source: GrpcClientSettingsManager of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from sprocket.clientcore.retry_policy import customized, exponential
from sprocket.message.lite import CLIENT_QUOTA, CLIENT_QUOTA_DEFAULT
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.times import duration

_INT_MAX = (1 << 31) - 1

CONSUMERS = (
    pb.PUSH_CONSUMER,
    pb.SIMPLE_CONSUMER,
    pb.LITE_PUSH_CONSUMER,
    pb.LITE_SIMPLE_CONSUMER,
)
#: Those that consume lite topics.
LITE_CONSUMERS = (pb.LITE_PUSH_CONSUMER, pb.LITE_SIMPLE_CONSUMER)


def answered_settings(
    given: pb.Settings, config: ProxyConfig, group: GroupConfig | None
) -> pb.Settings:
    """The settings that a client gets, from those that it sent.

    Args:
        group: of a consumer: its group, if the brokers have it. Without one a consumer's own
            settings are laid over those of a new group.
    """
    made = pb.Settings()
    if given.WhichOneof("pub_sub") == "publishing":
        made.CopyFrom(given)
        _decide_for_producer(made, config)
    elif group is None:
        _decide_for_consumer(made, config, GroupConfig())
        made.MergeFrom(given)
    else:
        made.CopyFrom(given)
        _decide_for_consumer(made, config, group)
    made.metric.Clear()
    made.metric.on = False
    return made


def _decide_for_producer(settings: pb.Settings, config: ProxyConfig) -> None:
    policy = settings.backoff_policy
    policy.max_attempts = config.producer_attempts_max
    backoff = policy.exponential_backoff
    backoff.initial.CopyFrom(duration(config.producer_pause_ms))
    backoff.max.CopyFrom(duration(config.producer_pause_ms_max))
    backoff.multiplier = config.producer_pause_factor
    settings.publishing.validate_message_type = config.check_types
    settings.publishing.max_body_size = config.body_bytes_max


def _decide_for_consumer(settings: pb.Settings, config: ProxyConfig, group: GroupConfig) -> None:
    subscription = settings.subscription
    subscription.receive_batch_size = config.receive_count_max
    subscription.long_polling_timeout.CopyFrom(duration(config.hold_ms_max))
    subscription.fifo = group.consume_message_orderly
    settings.backoff_policy.CopyFrom(retry_policy(group))
    if settings.client_type in LITE_CONSUMERS:
        subscription.lite_subscription_quota = lite_quota(group)
        subscription.max_lite_topic_size = config.lite_topic_max


def lite_quota(group: GroupConfig) -> int:
    """How many lite topics a client of a group may subscribe; its clients heed it."""
    text = group.attributes.get(CLIENT_QUOTA, "")
    return min(int(text), _INT_MAX) if text.isascii() and text.isdecimal() else CLIENT_QUOTA_DEFAULT


def attempts_max(group: GroupConfig) -> int:
    """How often a message is delivered to a group before it becomes a dead letter."""
    return max(1, min(group.retry_max_times + 1, _INT_MAX))


def retry_policy(group: GroupConfig) -> pb.RetryPolicy:
    """The pauses before a group gets a message again."""
    made = pb.RetryPolicy(max_attempts=attempts_max(group))
    growing = exponential(group)
    if growing is None:
        made.customized_backoff.next.extend(map(duration, customized(group)))
    else:
        backoff = made.exponential_backoff
        backoff.initial.CopyFrom(duration(growing.initial_ms))
        backoff.max.CopyFrom(duration(growing.longest_ms))
        backoff.multiplier = growing.factor
    return made
