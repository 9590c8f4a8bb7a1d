"""Reads all metrics of a process, bounded and with their labels."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.metrics.config import MetricsConfig
from sprocket.metrics.model import Family, Metric, Source

logger = logging.getLogger(__name__)

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Labels that the metrics have themselves.
_TAKEN = frozenset({"cluster", "node_type", "node_id", "aggregation"})


class Reading(NamedTuple):
    """The values of one metric of one server.

    Attributes:
        labels: the labels that all of the values have.
    """

    labels: Mapping[str, str]
    family: Family


def pairs(text: str | None, key: str) -> dict[str, str]:
    """The pairs in a setting such as `zone:a,rack:7`.

    Raises:
        ConfigError: it has another form; the text names the setting `key`.
    """
    found = {}
    for each in (text or "").split(","):
        if not each.strip():
            continue
        name, sign, value = each.partition(":")
        if not (name.strip() and sign):
            raise ConfigError(f"{key} takes pairs such as zone:a,rack:7")
        found[name.strip()] = value.strip()
    return found


class MetricsReader:
    """Reads the metrics of the servers of a process.

    Raises:
        ConfigError: the labels that are set are no labels.
    """

    def __init__(self, sources: Sequence[Source], config: MetricsConfig) -> None:
        self._sources = sources
        self._most = config.series_max
        self._own = pairs(config.labels, "metrics.labels (metricsLabel)")
        for name in self._own:
            if not _LABEL.fullmatch(name) or name in _TAKEN:
                raise ConfigError(f"metrics.labels (metricsLabel): {name!r} cannot be a label here")
        if config.in_delta:
            self._own["aggregation"] = "delta"
        self._cut: set[str] = set()

    async def readings(self) -> AsyncIterator[Reading]:
        """The values now, those of one metric together."""
        for source in self._sources:
            labels = {**self._own, **source.labels}
            async for family in source.families():
                self._bound(family)
                yield Reading(labels, family)

    def _bound(self, family: Family) -> None:
        values: dict[tuple[str, ...], Any] = family.histograms or family.points
        over = len(values) - self._most
        if over <= 0:
            return
        if family.metric.name not in self._cut:
            self._cut.add(family.metric.name)
            logger.warning(
                "%s has %d values, and %d of them are left out: metrics.series_max "
                "(metricsOtelCardinalityLimit) is %d",
                family.metric.name, len(values), over, self._most,
            )  # fmt: skip
        for labels in list(values)[self._most :]:
            del values[labels]


def labels_of(metric: Metric, values: tuple[str, ...], common: Mapping[str, str]) -> dict[str, str]:
    """All labels of a value."""
    return {**common, **dict(zip(metric.labels, values, strict=True))}
