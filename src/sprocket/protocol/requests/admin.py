"""Requests about a broker's settings, state and cleaning.

Source: GetBrokerConfigResponseHeader, ViewBrokerStatsData… and AdminBrokerProcessor of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.command import Header, Int, Long


class UpdateBrokerConfig(Header, kw_only=True):
    """Changes settings; request body: lines `key=value`."""

    code: ClassVar[int] = 25


class BrokerConfigReply(Header, kw_only=True):
    """The settings' data version, as JSON text."""

    version: str | None = None


class BrokerConfigOf(Header, kw_only=True):
    """Asks for the settings; reply body: lines `key=value`."""

    code: ClassVar[int] = 26
    reply: ClassVar[type[Header]] = BrokerConfigReply


class BrokerState(Header, kw_only=True):
    """Asks for counters and state; reply body: `KvTable`."""

    code: ClassVar[int] = 28


class CleanExpiredQueues(Header, kw_only=True):
    """Deletes queue files whose messages are no longer in the log."""

    code: ClassVar[int] = 306


class BrokerStats(Header, kw_only=True):
    """Asks for one statistic; reply body: `BrokerStatsBody`."""

    code: ClassVar[int] = 315

    stats_name: str
    stats_key: str


class DeleteExpiredLog(Header, kw_only=True):
    """Deletes expired log files now."""

    code: ClassVar[int] = 329


class AddBroker(Header, kw_only=True):
    """Has a container of brokers start one more, by a `broker.conf` on its own machine."""

    code: ClassVar[int] = 902

    config_path: str | None = None


class RemoveBroker(Header, kw_only=True):
    """Has a container stop a broker; the reply is code 211 if it has none of this name."""

    code: ClassVar[int] = 903

    broker_name: str
    broker_cluster_name: str
    broker_id: Long


class SetReadAhead(Header, kw_only=True):
    """Whether a broker's system reads the log's files ahead: 0, it does; 1, it does not.

    Source: AdminBrokerProcessor.setCommitLogReadaheadMode of RocketMQ 5.3.3.
    """

    code: ClassVar[int] = 2004

    read_ahead_mode: Int = msgspec.field(name="READ_AHEAD_MODE")
