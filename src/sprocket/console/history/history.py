"""The history of a cluster: figures of brokers, and the lag of groups that are watched. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sprocket.admin.brokers import BrokerProcess
from sprocket.admin.positions import QueueLag
from sprocket.console.history.figures import figures_of
from sprocket.console.history.series import ValueSeries

#: Brokers and groups that are remembered, and queues of a group.
_NAMES_MAX, _QUEUES_MAX = 500, 256
#: A name of which nothing was heard for so long is forgotten, ms.
_FORGET_MS = 14 * 86_400_000


class ClusterHistory:
    """What was sampled. It is bounded in time and in names."""

    def __init__(self) -> None:
        self._brokers: dict[tuple[str, str], ValueSeries] = {}
        self._lags: dict[str, dict[str, ValueSeries]] = {}

    def add_brokers(self, now_ms: int, processes: Iterable[BrokerProcess]) -> None:
        """Adds the figures of broker processes."""
        for process in processes:
            for figure, value in figures_of(process.state).items():
                self._series((name_of(process), figure)).add(now_ms, value)
        old = [key for key, each in self._brokers.items() if each.newest_ms < now_ms - _FORGET_MS]
        for key in old:
            del self._brokers[key]

    def _series(self, key: tuple[str, str]) -> ValueSeries:
        if key not in self._brokers and len(self._brokers) >= _NAMES_MAX:
            return ValueSeries()
        return self._brokers.setdefault(key, ValueSeries())

    def add_lag(self, now_ms: int, group: str, queues: Iterable[QueueLag]) -> None:
        """Adds the lag of a group by queue, as far as there are not too many queues."""
        known = self._lags.setdefault(group, {})
        for queue in queues:
            name = f"{queue.topic} {queue.broker}:{queue.number}"
            if name in known or len(known) < _QUEUES_MAX:
                known.setdefault(name, ValueSeries()).add(now_ms, queue.behind)

    def forget_groups(self, watched: Mapping[str, object]) -> None:
        """Forgets the lag of groups that nobody watches any more."""
        for group in [each for each in self._lags if each not in watched]:
            del self._lags[group]

    def of_figure(
        self, figure: str, since_ms: int, now_ms: int
    ) -> dict[str, list[tuple[int, float | None]]]:
        """A figure of all brokers, by the name of the process."""
        return {
            name: points
            for (name, each), series in sorted(self._brokers.items())
            if each == figure and (points := series.points(since_ms, now_ms))
        }

    def of_group(
        self, group: str, since_ms: int, now_ms: int
    ) -> dict[str, list[tuple[int, float | None]]]:
        """The lag of a group that is watched, by queue."""
        return {
            name: points
            for name, series in sorted(self._lags.get(group, {}).items())
            if (points := series.points(since_ms, now_ms))
        }


def name_of(process: BrokerProcess) -> str:
    """How plots call a process: the broker, and of a slave its number."""
    return process.broker if process.number == 0 else f"{process.broker} · {process.number}"
