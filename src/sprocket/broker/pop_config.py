"""The settings of pop consumption: part of a broker's, with RocketMQ's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base.config import setting
from sprocket.broker.account_config import AccountConfig


@dataclass(frozen=True, slots=True)
class PopConfig(AccountConfig):
    """Settings of pop consumption. Times in milliseconds."""

    revive_queues: int = setting(
        8,
        "Queues for the records about popped messages.",
        rocketmq="reviveQueueNum",
        minimum=1,
        maximum=256,
    )
    pop_retry_v2: bool = setting(
        False,
        "Whether messages that come again do so through `%RETRY%group+topic`, which is "
        "unambiguous, instead of `%RETRY%group_topic`. Both are always read.",
        rocketmq="enableRetryTopicV2",
    )
    pop_retry_percent: int = setting(
        20,
        "How many pops of a hundred look for messages that come again before new ones.",
        rocketmq="popFromRetryProbability",
        minimum=0,
        maximum=100,
    )
    pop_priority_retry_percent: int = setting(
        0,
        "The same for pops that go by priority.",
        rocketmq="popFromRetryProbabilityForPriority",
        minimum=0,
        maximum=100,
    )
    priority_ascending: bool = setting(
        True,
        "Whether 0 is the lowest priority of a message, or the highest.",
        rocketmq="priorityOrderAsc",
    )
    held_pops_max: int = setting(
        100_000,
        "Pops and notifications of all clients together that may wait at the same time.",
        rocketmq="maxPopPollingSize",
        minimum=1,
    )
    held_pops_queue_max: int = setting(
        1024,
        "The same for one group and one queue, or all queues, of a topic.",
        rocketmq="popPollingSize",
        minimum=1,
    )
    request_mode: str = setting(
        "PULL",
        "How a group consumes a topic if it lets the broker decide and no mode is set: `PULL`, "
        "`POP`.",
        rocketmq="defaultMessageRequestMode",
        choices=("PULL", "POP"),
    )
    pop_share_queues: int = setting(
        -1,
        "With such a `POP`, of how many next members each member pops the queues too; -1: of all.",
        rocketmq="defaultPopShareQueueNum",
        minimum=-1,
    )
    server_rebalance: bool = setting(
        True,
        "Whether a member that lets the broker decide gets its share of the queues, or all.",
        rocketmq="serverLoadBalancerEnable",
    )
