"""What the demonstration was asked to do, and what it did: plain values."""

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
    """What the user asked for.

    Attributes:
        store: folder of everything that is kept.
        messages: how many to send.
        nameserver_port, broker_port: None for the usual ones, or others where those are taken.
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
        """Where Spark's own words go."""
        return self.store / "spark.log"


@dataclass(slots=True)
class Tally:
    """What one member of the group did: orders billed, and the numbers of its queues."""

    member: str
    orders: int = 0
    queues: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """What was done; no report if Spark was not wanted."""

    sent: int
    tallies: list[Tally]
    report: Report | None
