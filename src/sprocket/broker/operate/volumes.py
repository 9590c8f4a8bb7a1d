"""Operators' requests for counts of messages and bytes, by topic and group (315).

Source: AdminBrokerProcessor.ViewBrokerStatsData, BrokerStatsManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.tables.volumes import (
    DAY,
    HOUR,
    MINUTE,
    Flow,
    VolumePeriod,
    Volumes,
    VolumeSnapshot,
)
from sprocket.protocol.bodies import BrokerStatsBody, StatsItem
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import BrokerStats
from sprocket.remoting.transport import Peer

#: The beginnings of the statistics' names.
_TOPIC, _GROUP, _RETURNS = "TOPIC_PUT", "GROUP_GET", "SNDBCK_PUT"
_PUT, _GOT = "BROKER_PUT", "BROKER_GET"
_COUNT, _SIZE = "_NUMS", "_SIZE"


class VolumeRequests:
    """Shows statistics with RocketMQ's names: `TOPIC_PUT_NUMS`, `GROUP_GET_SIZE` and the like.

    Args:
        cluster: name of the cluster: the key of statistics of the whole broker.
    """

    def __init__(self, volumes: Volumes, *, cluster: str) -> None:
        self._volumes = volumes
        self._cluster = cluster

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.VIEW_BROKER_STATS_DATA: self.show}

    def show(self, command: Command, peer: Peer) -> Reply:
        """One statistic over the last minute, hour and day.

        Raises:
            SystemFailure: there is no statistic of that name, or nothing was counted for a day.
        """
        header = command.read(BrokerStats)
        name, key = header.stats_name, header.stats_key
        is_size = name.endswith(_SIZE)
        kind = name.removesuffix(_SIZE if is_size else _COUNT)
        over = None if kind == name else self._find(kind, key)
        if over is None:
            raise SystemFailure(f"The stats <{name}> <{key}> not exist")
        now_ms = loop_ms()
        minute, hour, day = (
            _item(over(span, now_ms), is_size=is_size) for span in (MINUTE, HOUR, DAY)
        )
        answer = BrokerStatsBody(stats_day=day, stats_hour=hour, stats_minute=minute)
        return Reply(body=answer.encode())

    def _find(self, kind: str, key: str) -> Callable[[VolumePeriod, int], VolumeSnapshot] | None:
        if key == self._cluster and kind in (_PUT, _GOT):
            return self._volumes.put_over if kind == _PUT else self._volumes.got_over
        topic, _, group = key.rpartition("@")
        flow: Flow | None = None
        if kind == _TOPIC:
            flow = self._volumes.of_topic(key)
        elif kind == _GROUP:
            flow = self._volumes.of_group(group, topic)
        elif kind == _RETURNS:
            flow = self._volumes.returns_of(group, topic)
        return None if flow is None else flow.in_last


def _item(volume: VolumeSnapshot, *, is_size: bool) -> StatsItem:
    total = volume.bytes if is_size else volume.messages
    return StatsItem(
        avgpt=total / volume.calls if volume.calls else 0.0,
        sum=total,
        tps=1000 * total / volume.ms,
    )
