"""The settings of consumers that pop on request. Sizes are in bytes, times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base.config import setting
from sprocket.client.config import ClientConfig
from sprocket.message.pop_handle import POP_COUNT_MAX


@dataclass(frozen=True, slots=True)
class SimpleConfig(ClientConfig):
    """Settings of a `SimpleConsumer`."""

    receive_batch: int = setting(
        16,
        "How many messages one receive returns at most, if it names no number.",
        minimum=1,
        maximum=POP_COUNT_MAX,
    )
    invisible_ms: int = setting(
        60_000,
        "For how long received messages are invisible to the rest of the group, if a receive names "
        "no time.",
        rocketmq="popInvisibleTime",
        minimum=1,
    )
    hold_ms: int = setting(
        15_000,
        "How long a receive waits for messages, if it names no time.",
        rocketmq="awaitDuration",
        minimum=0,
        maximum=300_000,
    )
    ack_timeout_ms: int = setting(
        10_000,
        "How long acknowledgements and changes of the invisible time are repeated while a broker "
        "has no master, or is away.",
        minimum=1,
    )
