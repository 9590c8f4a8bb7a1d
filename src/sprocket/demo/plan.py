"""The options and the result of the demo, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sprocket.demo.events import DemoReport
from sprocket.demo.orders import TOPIC

GROUP = "billing"
NAMESERVER_PORT = 9876
BROKER_PORT = 10911


@dataclass(frozen=True, slots=True)
class Plan:
    """The user's options.

    Attributes:
        store: folder of all data.
        messages: number of messages to send.
        nameserver_port, broker_port: None for the default ports, or free ones if those are taken.
    """

    store: Path = Path("sprocket-data")
    messages: int = 5000
    has_spark: bool = True
    nameserver_port: int | None = None
    broker_port: int | None = None

    @property
    def parquet(self) -> Path:
        """Folder of the Spark job's output."""
        return self.store / "parquet" / TOPIC

    @property
    def spark_log(self) -> Path:
        """File for Spark's own log."""
        return self.store / "spark.log"


@dataclass(slots=True)
class MemberTally:
    """The work of one member of the group: orders billed, and the numbers of its queues."""

    member: str
    orders: int = 0
    queues: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """The result of the demo; without a report if Spark was switched off."""

    sent: int
    tallies: list[MemberTally]
    report: DemoReport | None
