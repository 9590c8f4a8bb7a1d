"""What a slave asks its master, besides the log itself.

Source: AdminBrokerProcessor, SlaveSynchronize of RocketMQ 4.9 and 5.x. The other lists that a
slave copies are `AllTopicConfigs`, `AllOffsets`, `AllGroupConfigs`, `AllRequestModes`.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class AllDelayOffsets(Header, kw_only=True):
    """Progress of the delay levels; body of the answer: `DelayOffsets`."""

    code: ClassVar[int] = 45


class TimerCheckPoint(Header, kw_only=True):
    """Progress of the timer; body of the answer: six numbers of 8 bytes and more."""

    code: ClassVar[int] = 60


class TimerMetrics(Header, kw_only=True):
    """How many messages wait in the timer; body of the answer: `TimerMetricsBody`."""

    code: ClassVar[int] = 61


class ReplicaState(Header, kw_only=True):
    """How replication stands; body of the answer: `ReplicaStateBody`."""

    code: ClassVar[int] = 907
