"""Settings of clients: what they say of themselves, and what the proxy answers. Pure.

A client sends its settings when it starts and every five minutes, and waits for the answer: the
same with the values that the proxy, or its consumer group, decides.
Source: GrpcClientSettingsManager of RocketMQ 5.3 (module proxy), GroupRetryPolicy and its kinds.
"""

from __future__ import annotations

from typing import Any

from sprocket.message.properties import DELAY_LEVELS
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.times import duration

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000}
#: A group's pauses if it does not say more: RocketMQ's delay levels, ms.
_PAUSES_MS = tuple(int(each[:-1]) * _UNITS[each[-1]] for each in DELAY_LEVELS.split())
_INITIAL_MS, _LONGEST_MS, _FACTOR = 5_000, 7_200_000, 2
_PAUSES_MAX = 100
_INT_MAX = (1 << 31) - 1

CONSUMERS = (
    pb.PUSH_CONSUMER,
    pb.SIMPLE_CONSUMER,
    pb.LITE_PUSH_CONSUMER,
    pb.LITE_SIMPLE_CONSUMER,
)


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


def attempts_max(group: GroupConfig) -> int:
    """How often a message is delivered to a group before it becomes a dead letter."""
    return max(1, min(group.retry_max_times + 1, _INT_MAX))


def retry_policy(group: GroupConfig) -> pb.RetryPolicy:
    """The pauses before a group gets a message again."""
    made = pb.RetryPolicy(max_attempts=attempts_max(group))
    if _is_exponential(group):
        initial_ms, longest_ms, factor = _exponential(group)
        backoff = made.exponential_backoff
        backoff.initial.CopyFrom(duration(initial_ms))
        backoff.max.CopyFrom(duration(longest_ms))
        backoff.multiplier = factor
    else:
        made.customized_backoff.next.extend(map(duration, _customized(group)))
    return made


def pause_ms(group: GroupConfig, attempts: int) -> int:
    """How long a message that failed some times stays invisible.

    Source: nextDelayDuration of ExponentialRetryPolicy and CustomizedRetryPolicy.
    """
    attempts = max(attempts, 0)
    if _is_exponential(group):
        initial_ms, longest_ms, factor = _exponential(group)
        return min(longest_ms, initial_ms * int(factor ** min(attempts, 32)))
    pauses = _customized(group)
    return pauses[min(attempts + 2, len(pauses) - 1)]


def _is_exponential(group: GroupConfig) -> bool:
    return group.group_retry_policy.get("type") == "EXPONENTIAL"


# A group's policy is kept as its operator wrote it, so each value may be anything.
def _exponential(group: GroupConfig) -> tuple[int, int, int]:
    given = group.group_retry_policy.get("exponentialRetryPolicy")
    given = given if isinstance(given, dict) else {}
    return (
        _positive(given.get("initial"), _INITIAL_MS),
        _positive(given.get("max"), _LONGEST_MS),
        _positive(given.get("multiplier"), _FACTOR),
    )


def _customized(group: GroupConfig) -> tuple[int, ...]:
    given = group.group_retry_policy.get("customizedRetryPolicy")
    pauses = given.get("next") if isinstance(given, dict) else None
    if not isinstance(pauses, list) or not 0 < len(pauses) <= _PAUSES_MAX:
        return _PAUSES_MS
    return tuple(_positive(each, _LONGEST_MS) for each in pauses)


def _positive(value: Any, otherwise: int) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 < value <= _INT_MAX else otherwise
