"""Requests of a slave to its master, besides those for the log itself.

Source: AdminBrokerProcessor, SlaveSynchronize of RocketMQ 4.9 and 5.x. The other lists that a
slave copies are `AllTopicConfigs`, `AllOffsets`, `AllGroupConfigs`, `AllRequestModes`.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Long


class AllDelayOffsets(Header, kw_only=True):
    """Asks for the progress of the delay levels; reply body: `DelayOffsets`."""

    code: ClassVar[int] = 45


class TimerCheckPoint(Header, kw_only=True):
    """Asks for the progress of the timer; reply body: six numbers of 8 bytes and more."""

    code: ClassVar[int] = 60


class TimerMetrics(Header, kw_only=True):
    """Asks how many messages wait in the timer; reply body: `TimerMetricsBody`."""

    code: ClassVar[int] = 61


class ReplicaState(Header, kw_only=True):
    """Asks for the state of replication; reply body: `ReplicaStateBody`."""

    code: ClassVar[int] = 907


class ReplicaAddressReply(Header, kw_only=True):
    """Where a master replicates, and the end of its log when it started; empty from a slave."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class ReplicaAddress(Header, kw_only=True):
    """A master tells a slave where it replicates; without an address, a slave asks it.

    Source: ExchangeHAInfoRequestHeader and AdminBrokerProcessor.updateBrokerHaInfo of RocketMQ 5.x.
    """

    code: ClassVar[int] = 906
    reply: ClassVar[type[Header]] = ReplicaAddressReply

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None
