"""Topics in and out of Spark beside Spark's own connector for Kafka, in one run.

Both connectors run in the same session of PySpark 4.2 (the newest that Kafka's jar is to be had
for), on rows of the same sizes with the same columns. Kafka's stands there as users have it and,
in rows of their own, with `kafka.max.poll.records` at 10,000, which is what it can do.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.brokers import create_topic
from bench.figures import P50, P99, Figure, Report, Sample, cpu_seconds, interleave
from bench.send import QUEUES, TOPIC, send_run
from bench.spark.connectors import Source
from bench.spark.ground import ROOT, Ground, prepare
from bench.spark.servers import Server, kafka, sprocket
from bench.spark.session import Session

ROWS = Figure("rate", "rows/s", True)
SPARK_CPU = Figure("Spark CPU", "µs/row", False)
BROKER_CPU = Figure("broker CPU", "µs/row", False)
TRIGGER = Figure("trigger, median", "ms", False)
FIRST = Figure("first row after the start of Python", "s", False)
SESSION = Figure("of which the session", "s", False)
QUERY = Figure("of which the query", "s", False)

PER_SECOND = 1000
_LATENCY_SECONDS = 20
_MANY_QUEUES = 64
_POLL = {"kafka.max.poll.records": "10000"}
_WARM_RUNS = 3
#: Which columns a scan gives.
_SCANNED = {
    "three columns": {"columns": "queue_id int, queue_offset bigint, body binary"},
    "the seven of the reads": {},
    "all": {"columns": ""},
}


@dataclass(frozen=True, slots=True)
class Filled:
    """A topic with rows in it, on every server.

    Attributes:
        name: of the topic.
        rows: how many.
        size: bytes of a body.
    """

    name: str
    rows: int
    size: int


#: The name of the broker of ours.
_BROKER = "broker-a"
#: What can be run alone.
PARTS = ("sink", "batch", "stream", "scan", "triggers", "latency", "cold")
_OF_FILLED = {"batch", "stream", "scan", "cold"}


def main(
    console: Console, folder: Path, *, quick: bool, rounds: int, only: Collection[str] = PARTS
) -> None:
    """Prints the tables of some parts, and how long each took."""
    ground = prepare(console)
    with _servers(folder, ground) as servers:
        bench = _Bench(console, folder, ground, servers, rounds)
        small = Filled("rows100", 200_000 if quick else 1_000_000, 100)
        large = Filled("rows1k", 50_000 if quick else 200_000, 1024)
        masters = ("local[1]",) if quick else ("local[1]", "local[2]")
        parts: dict[str, Callable[[], None]] = {
            "sink": lambda: bench.sink(100_000 if quick else 300_000),
            "batch": lambda: bench.reads("batch", masters, small, large),
            "stream": lambda: bench.reads("stream", masters, small, large),
            "scan": lambda: bench.scans(small, large),
            "triggers": bench.triggers,
            "latency": bench.latency,
            "cold": lambda: bench.cold(small),
        }
        if _OF_FILLED & set(only):
            _timed(console, "filling topics", lambda: bench.fill(small, large))
        for name in PARTS:
            if name in only:
                _timed(console, name, parts[name])


def _timed(console: Console, what: str, run: Callable[[], None]) -> None:
    began = time.monotonic()
    run()
    console.print(f"{what}: {time.monotonic() - began:.0f} s")


@contextlib.contextmanager
def _servers(folder: Path, ground: Ground) -> Iterator[dict[str, Server]]:
    with contextlib.ExitStack() as stack:
        servers = {"sprocket": stack.enter_context(sprocket(folder))}
        if ground.server is not None:
            servers["kafka"] = stack.enter_context(kafka(folder, ground.server))
        yield servers


class _Bench:
    """Runs the cases; a table for each kind of them."""

    def __init__(
        self,
        console: Console,
        folder: Path,
        ground: Ground,
        servers: dict[str, Server],
        rounds: int,
    ) -> None:
        self._console = console
        self._folder = folder
        self._ground = ground
        self._servers = servers
        self._rounds = rounds

    def fill(self, *topics: Filled) -> None:
        """Writes the rows that the reads read, and counts them."""
        with self._session("local[2]") as spark:
            for topic in topics:
                for server in self._servers.values():
                    _create(spark, server, topic.name, QUEUES)
                    source = _source(server, topic.name)
                    spark.call("write", source=source, rows=topic.rows, size=topic.size, tasks=4)
                    counted = spark.call("count", source=source)["rows"]
                    if counted != topic.rows:
                        raise RuntimeError(f"{server.kind}: {counted} of {topic.rows} rows read")

    def reads(self, command: str, masters: Sequence[str], *topics: Filled) -> None:
        """Batch or stream, to nothing and to Parquet."""
        for master in masters:
            report = self._report(f"Spark reads, {master}")
            with self._session(master) as spark:
                self._warm(spark, [(server, {}) for server in self._servers.values()], topics[0])
                for topic in topics:
                    for into in ("noop", "parquet"):
                        case = f"{command}, {topic.size} B to {into}"
                        samples = interleave(
                            {
                                name: self._reading(spark, server, topic, command, into, options)
                                for name, (server, options) in self._sides().items()
                            },
                            rounds=self._rounds,
                            # What the first topic's runs have not warmed up yet is little.
                            warm_up=int(topic is topics[0]),
                        )
                        report.add(case, samples)
                        if "kafka, 10k polls" in samples:
                            at_best = {
                                "sprocket": samples["sprocket"],
                                "kafka": samples["kafka, 10k polls"],
                            }
                            report.add(f"{case}, Kafka with 10,000 a poll", at_best)
            report.show(self._console)

    def scans(self, *topics: Filled) -> None:
        """Our store's files read without a broker."""
        report = Report("store scan, local[1]", ["sprocket"])
        server = self._servers["sprocket"]
        with self._session("local[1]") as spark:
            self._warm(spark, [(server, {"store": server.store})], topics[0])
            for topic in topics:
                for title, chosen in _SCANNED.items():
                    scan = _source(server, topic.name, store=server.store, **chosen)

                    def measure(scan: Source = scan, topic: Filled = topic) -> Sample:
                        seen = spark.call("batch", source=scan, into="noop")
                        return {
                            ROWS: topic.rows / seen["seconds"],
                            SPARK_CPU: seen["cpu"] / topic.rows * 1e6,
                        }

                    if spark.call("count", source=scan)["rows"] != topic.rows:
                        raise RuntimeError("the scan does not give every row")
                    samples = interleave({"sprocket": measure}, rounds=self._rounds)
                    report.add(f"{topic.size} B, {title}, to noop", samples)
        report.show(self._console)

    def _warm(
        self, spark: Session, sides: Sequence[tuple[Server, dict[str, str]]], topic: Filled
    ) -> None:
        """Runs until Java has compiled what it runs: a first million rows cost several times."""
        for _ in range(_WARM_RUNS):
            for server, options in sides:
                spark.call("batch", source=_source(server, topic.name, **options), into="noop")

    def sink(self, rows: int) -> None:
        """Rows of 100 B written, at least once and exactly once, and how many a load generator
        sends to our broker at best."""
        once = ("sprocket, once", self._servers["sprocket"], {"transactionBrokers": _BROKER})
        sides: list[tuple[str, Server, dict[str, str]]]
        sides = [(name, server, {}) for name, server in self._servers.items()]
        sides.insert(1, once)
        report = Report("Spark writes 100 B", [name for name, *_ in sides])
        for master in ("local[1]", "local[2]"):
            with self._session(master) as spark:
                measures: dict[str, Callable[[], Sample]] = {}
                for name, server, options in sides:
                    _create(spark, server, f"sink{master[6]}", QUEUES)
                    source = _source(server, f"sink{master[6]}", **options)

                    def measure(server: Server = server, source: Source = source) -> Sample:
                        before = cpu_seconds(server.node.pid)
                        seen = spark.call("write", source=source, rows=rows, size=100, tasks=2)
                        return _per_row(seen, rows, cpu_seconds(server.node.pid) - before)

                    measures[name] = measure
                report.add(f"batch, {master}", interleave(measures, rounds=self._rounds))
        node = self._servers["sprocket"].node
        create_topic(node, TOPIC, QUEUES)

        def sends() -> Sample:
            outcome, cpu = send_run(node, size=100, total=rows, connections=8, in_flight=64)
            return {ROWS: outcome.per_second, BROKER_CPU: cpu / outcome.answered * 1e6}

        report.add("load generator, 64 in flight", interleave({"sprocket": sends}, rounds=3))
        report.show(self._console)

    def triggers(self) -> None:
        """What a micro-batch costs that has next to nothing in it, over many queues."""
        report = self._report(f"micro-batch of {_MANY_QUEUES} rows over {_MANY_QUEUES} queues")
        with self._session("local[2]") as spark:
            measures: dict[str, Callable[[], Sample]] = {}
            for name, server in self._servers.items():
                topic = "many"
                _create(spark, server, topic, _MANY_QUEUES)
                spark.call(
                    "write",
                    source=_source(server, topic),
                    rows=20 * _MANY_QUEUES,
                    size=100,
                    tasks=1,
                )
                source = _source(server, topic, maxOffsetsPerTrigger=str(2 * _MANY_QUEUES))

                def measure(source: Source = source) -> Sample:
                    seen = spark.call("stream", source=source, into="noop")
                    return {TRIGGER: statistics.median(seen["triggers"])}

                measures[name] = measure
            report.add("stream to noop, local[2]", interleave(measures, rounds=self._rounds))
        report.show(self._console)

    def latency(self) -> None:
        """From send to sink at a steady rate."""
        report = self._report(f"from send to sink at {PER_SECOND} rows/s, local[2]")
        with self._session("local[2]") as spark:
            measures: dict[str, Callable[[], Sample]] = {}
            for name, server in self._servers.items():
                _create(spark, server, "steady", QUEUES)
                source = _source(server, "steady", startingOffsets="latest")

                def measure(server: Server = server, source: Source = source) -> Sample:
                    return self._waits(spark, server, source)

                measures[name] = measure
            report.add("100 B, default trigger", interleave(measures, rounds=self._rounds))
        report.show(self._console)

    def _waits(self, spark: Session, server: Server, source: Source) -> Sample:
        """One run: five seconds until all is warm, then what counts."""
        waits = spark.call("listen", source=source)["waits"]
        spark.call("heard", waits=waits, count=self._send(server, 5))
        found = spark.call("heard", waits=waits, count=self._send(server, _LATENCY_SECONDS))
        spark.call("hush")
        ordered = sorted(found["waits"])
        return {P50: ordered[len(ordered) // 2], P99: ordered[int(len(ordered) * 0.99)]}

    def _send(self, server: Server, seconds: int) -> int:
        command = [str(self._ground.python), "-m", "bench.spark.sender", server.kind]
        asked = [server.address, "steady", str(PER_SECOND), str(seconds)]
        done = subprocess.run([*command, *asked], check=True, capture_output=True, cwd=ROOT)
        return int(done.stdout)

    def cold(self, topic: Filled) -> None:
        """A process with nothing running yet, until its first row."""
        report = self._report("cold start, local[2]")

        def starting(server: Server) -> Callable[[], Sample]:
            def measure() -> Sample:
                with self._session("local[2]") as spark:
                    query = spark.call("first", source=_source(server, topic.name))["seconds"]
                    session = spark.started["session"]
                    return {
                        FIRST: spark.started["import"] + session + query,
                        SESSION: session,
                        QUERY: query,
                    }

            return measure

        sides = {name: starting(server) for name, server in self._servers.items()}
        report.add("first row", interleave(sides, rounds=self._rounds, warm_up=0))
        report.show(self._console)

    def _reading(
        self,
        spark: Session,
        server: Server,
        topic: Filled,
        command: str,
        into: str,
        options: dict[str, str],
    ) -> Callable[[], Sample]:
        source = _source(server, topic.name, **options)
        if command == "stream":
            most = str(max(1, topic.rows // 4))
            source = source._replace(options={**source.options, "maxOffsetsPerTrigger": most})

        def measure() -> Sample:
            before = cpu_seconds(server.node.pid)
            seen = spark.call(command, source=source, into=into)
            if seen.get("rows", topic.rows) != topic.rows:
                raise RuntimeError(f"{server.kind}: {seen['rows']} of {topic.rows} rows streamed")
            return _per_row(seen, topic.rows, cpu_seconds(server.node.pid) - before)

        return measure

    def _sides(self) -> dict[str, tuple[Server, dict[str, str]]]:
        sides: dict[str, tuple[Server, dict[str, str]]] = {
            name: (server, {}) for name, server in self._servers.items()
        }
        if "kafka" in self._servers:
            sides["kafka, 10k polls"] = self._servers["kafka"], _POLL
        return sides

    def _report(self, title: str) -> Report:
        return Report(title, list(self._servers))

    def _session(self, master: str) -> Session:
        return Session(self._ground, master, self._folder / "spark.log")


def _create(spark: Session, server: Server, topic: str, queues: int) -> None:
    if server.kind == "kafka":
        spark.call("create_kafka_topic", source=_source(server, topic), queues=queues)
    else:
        create_topic(server.node, topic, queues)


def _per_row(seen: dict[str, float], rows: int, broker_seconds: float) -> Sample:
    return {
        ROWS: rows / seen["seconds"],
        SPARK_CPU: seen["cpu"] / rows * 1e6,
        BROKER_CPU: broker_seconds / rows * 1e6,
    }


def _source(server: Server, topic: str, **options: str) -> Source:
    return Source(server.kind, server.address, topic, options)
