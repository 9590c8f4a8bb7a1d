"""What a metric is, and its values at one moment. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from sprocket.base.histogram import Histogram


class Kind(Enum):
    """What a metric's values do, by Prometheus's word for it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """A metric.

    Attributes:
        meaning: for people, a sentence.
        labels: names of the labels that its values have besides those of the process.
        unit: of the values; empty for numbers of things.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""


@dataclass(slots=True)
class Family:
    """The values of one metric at one moment.

    Attributes:
        points: values by the values of the labels, in the order of the metric's labels.
        histograms: the same, of a metric whose values are histograms.
    """

    metric: Metric
    points: dict[tuple[str, ...], float] = field(default_factory=dict)
    histograms: dict[tuple[str, ...], Histogram] = field(default_factory=dict)

    @classmethod
    def single(cls, metric: Metric, value: float) -> Family:
        """The family of a metric without labels."""
        return cls(metric, {(): value})

    def add(self, labels: tuple[str, ...], value: float) -> None:
        """Adds to the value of these labels."""
        self.points[labels] = self.points.get(labels, 0) + value


class Source(Protocol):
    """Something that has metrics.

    Attributes:
        labels: the labels that all of its values have.
    """

    @property
    def labels(self) -> Mapping[str, str]: ...

    def families(self) -> AsyncIterator[Family]:
        """The values now, a metric at a time, in turns of the event loop."""
        ...
