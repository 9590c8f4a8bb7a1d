"""The overview: brokers as rows, and the figures of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sprocket.admin.brokers import BrokerProcess
from sprocket.console.history.figures import figures_of, number_of
from sprocket.console.operations.values import time_of
from sprocket.console.views.units import (
    NOTHING,
    ago_text,
    count_text,
    percent_text,
    rate_text,
    size_text,
    span_text,
)

#: Shares of a disk from which on it is worth a look, and from which on brokers refuse messages.
#: Source: diskMaxUsedSpaceRatio and DiskSpaceWarningLevelRatio of RocketMQ 5.x.
_FULL, _REFUSING = 0.75, 0.9


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What the tiles show.

    Attributes:
        brokers, processes, reachable: how many names, processes, and of these that answer.
        put, get: messages per second of all masters and all processes.
        disk: the share of the fullest disk; None if no broker says it.
    """

    brokers: int
    processes: int
    reachable: int
    put: float
    get: float
    disk: float | None

    @property
    def disk_look(self) -> str:
        """The class of the disk's figure."""
        return disk_look(self.disk)


def cluster_figures(processes: Sequence[BrokerProcess]) -> ClusterFigures:
    """The figures of all brokers together."""
    figures = [(each, figures_of(each.state)) for each in processes]
    disks = [found["disk"] for _, found in figures if "disk" in found]
    return ClusterFigures(
        brokers=len({each.broker for each in processes}),
        processes=len(processes),
        reachable=sum(each.is_reachable for each in processes),
        put=sum(found.get("put", 0) for each, found in figures if each.number == 0),
        get=sum(found.get("get", 0) for _, found in figures),
        disk=max(disks, default=None),
    )


def broker_rows(processes: Iterable[BrokerProcess], now_ms: int) -> list[dict[str, Any]]:
    """A row for each broker process."""
    return [_row(each, now_ms) for each in processes]


def _row(process: BrokerProcess, now_ms: int) -> dict[str, Any]:
    state = process.state
    figures = figures_of(state)
    started = number_of(state.get("bootTimestamp"))
    oldest = number_of(state.get("earliestMessageTimeStamp"))
    log_bytes = _log_bytes(state)
    if not process.is_reachable:
        said, look = "does not answer", "bad"
    elif not state:
        said, look = "refuses figures", "warn"
    else:
        said, look = "serves", "good"
    return {
        "id": f"{process.broker}:{process.number}",
        "broker": process.broker,
        "cluster": process.cluster,
        "role": "master" if process.number == 0 else f"slave {process.number}",
        "address": process.address,
        "state": said,
        "state_look": look,
        "version": process.version or "",
        "put": figures.get("put", -1),
        "put_text": rate_text(figures.get("put")),
        "get": figures.get("get", -1),
        "get_text": rate_text(figures.get("get")),
        "today": number_of(state.get("msgPutTotalTodayNow")) or 0,
        "today_text": count_text(number_of(state.get("msgPutTotalTodayNow"))),
        "disk": figures.get("disk", -1),
        "disk_text": percent_text(figures.get("disk")),
        "disk_look": disk_look(figures.get("disk")),
        "log": log_bytes or 0,
        "log_text": size_text(log_bytes),
        "oldest": oldest or 0,
        "oldest_text": ago_text(time_of(int(oldest or 0)), now_ms),
        "up": started or 0,
        "up_text": "" if not started else span_text((now_ms - started) / 1_000),
    }


def _log_bytes(state: Mapping[str, str]) -> float | None:
    first, last = (
        number_of(state.get(key)) for key in ("commitLogMinOffset", "commitLogMaxOffset")
    )
    return None if first is None or last is None else max(last - first, 0)


def disk_look(share: float | None) -> str:
    """The class of a figure of a disk."""
    if share is None or share < _FULL:
        return ""
    return "bad" if share >= _REFUSING else "warn"


def replica_rows(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each member, of the result of `brokers.replicas`, where a broker has several."""
    return [
        _member_row(group, member)
        for group in groups
        if len(group["members"]) > 1
        for member in group["members"]
    ]


def _member_row(group: Mapping[str, Any], member: Mapping[str, Any]) -> dict[str, Any]:
    behind, seconds = member["behind_bytes"], member["behind_seconds"]
    in_sync = member["is_in_sync"]
    is_master = member["role"] == "master"
    late = f" ({span_text(seconds)})" if seconds else ""
    return {
        "id": f"{group['broker']}:{member['number']}:{member['address']}",
        "broker": group["broker"],
        "number": member["number"],
        "address": member["address"],
        "role": member["role"] or "",
        "alive": "yes" if member["is_alive"] else "no",
        "alive_look": "good" if member["is_alive"] else "bad",
        "sync": {True: "in sync", False: "not in sync", None: ""}[in_sync],
        "sync_look": {True: "good", False: "bad", None: ""}[in_sync],
        "behind": -1 if behind is None else behind,
        "behind_text": NOTHING if is_master else f"{size_text(behind)}{late}",
        "epoch": "" if member["epoch"] is None else str(member["epoch"]),
    }
