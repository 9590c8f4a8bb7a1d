"""The settings of lite topics: part of a broker's, with RocketMQ's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base.config import setting
from sprocket.broker.pop_config import PopConfig


@dataclass(frozen=True, slots=True)
class LiteConfig(PopConfig):
    """Settings of lite topics. Times in milliseconds."""

    lite_topics_max: int = setting(
        1_000_000,
        "Lite topics that there may be. RocketMQ has 20,000, and they count there only with "
        "`enableLmqQuota`.",
        rocketmq="maxLmqConsumeQueueNum",
        minimum=1,
    )
    lite_subscriptions_max: int = setting(
        100_000,
        "Lite topics that all clients together may subscribe, each client counted by itself.",
        rocketmq="maxLiteSubscriptionCount",
        minimum=1,
    )
    lite_subscription_expiry_ms: int = setting(
        180_000,
        "How long a client may say nothing of its lite topics before they are forgotten. Clients "
        "send all of them each half minute.",
        rocketmq="liteSubscriptionCheckTimeoutMills",
        minimum=1000,
    )
    lite_check_ms: int = setting(
        120_000,
        "How often lite topics are looked for that had no message for as long as their topic's "
        "`lite.topic.expiration` says.",
        rocketmq="liteTtlCheckInterval",
        minimum=1000,
    )
    lite_kept_ms_min: int = setting(
        900_000,
        "So long a lite topic without messages is kept at least.",
        rocketmq="minLiteTTl",
        minimum=0,
    )
