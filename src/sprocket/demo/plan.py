"""The settings of the demonstration, and its result: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sprocket.demo.events import Report
from sprocket.demo.orders import TOPIC

GROUP = "billing"
NAMESERVER_PORT = 9876
BROKER_PORT = 10911


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings.

    Attributes:
        store: folder of all data.
        messages: number of orders to send.
        has_spark: whether Spark runs.
        nameserver_port, broker_port: None for the usual port, or a free one if it is in use.
    """

    store: Path = Path("sprocket-data")
    messages: int = 5000
    has_spark: bool = True
    nameserver_port: int | None = None
    broker_port: int | None = None

    @property
    def parquet(self) -> Path:
        """Where the Spark job writes."""
        return self.store / "parquet" / TOPIC

    @property
    def spark_log(self) -> Path:
        """The file for Spark's standard error."""
        return self.store / "spark.log"


@dataclass(slots=True)
class Tally:
    """The result of one member of the group: number of orders billed, and its queue numbers."""

    member: str
    orders: int = 0
    queues: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """The result of the demonstration; `report` is None without Spark."""

    sent: int
    tallies: list[Tally]
    report: Report | None
