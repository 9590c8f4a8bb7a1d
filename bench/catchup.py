"""A new slave gets the whole log of its master: what do the master's senders see of it meanwhile?

The log has 20 GiB (1 GiB with `--quick`). Each case is one slave that begins with nothing: without
a limit, and with one of 100 MiB/s.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic
from bench.figures import P50, P99, Figure, Report, Sample
from bench.load import drive, frame, send_fields
from bench.replicas import end_of_log
from bench.send import QUEUES, TOPIC, messages
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer

_GIB = 1 << 30
_FILL_BODY_BYTES = 64 * 1024
_SIZES = {"store.log_file_bytes": 1 << 30, "store.queue_file_bytes": 6_000_000}
SPEED = Figure("the slave takes in", "MiB/s", True)
ROUNDS = Figure("measured runs", "runs", True)


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    wanted = (1 if quick else 20) * _GIB
    with SprocketNameServer(folder) as names:
        settings = {**_SIZES, "broker.role": "ASYNC_MASTER", "broker.replication_start": "first"}
        master = SprocketBroker(folder / "m", names.address, name="big", settings=settings)
        with master:
            create_topic(Node("big", 0, master.port, master.pid), TOPIC, QUEUES)
            console.log(f"filling the log with {wanted / _GIB:g} GiB")
            _fill(master, wanted)
            alone = [_sends(master) for _ in range(3 * rounds)]
        for limit in (False, True):
            master.settings = {**settings, "broker.replication_limit": limit}
            with master:
                _sends(master)
                slave = SprocketBroker(
                    folder / "s", names.address, name="big",
                    settings={**_SIZES, "broker.role": "SLAVE", "broker.id": 1},
                )  # fmt: skip
                case = "100 MiB/s" if limit else "no limit"
                console.log(f"a slave takes it in, {case}")
                with slave:
                    meanwhile = _while_it_takes_in(master, slave)
                shutil.rmtree(folder / "s")
            report = Report(f"{wanted / _GIB:g} GiB for a new slave", ["meanwhile", "alone"])
            report.add(case, {"meanwhile": meanwhile, "alone": [*map(_without_speed, alone)]})
            report.show(console)


def _fill(master: SprocketBroker, wanted: int) -> None:
    body = b"x" * _FILL_BODY_BYTES
    requests = [
        frame(310, send_fields(TOPIC, number % QUEUES, number), body) for number in range(64)
    ]
    while end_of_log(master.port) < wanted:
        drive(master.port, requests, total=4_000, connections=2, in_flight=16)


def _sends(master: SprocketBroker) -> dict[Figure, float]:
    seen = drive(master.port, messages(TOPIC, QUEUES, 128), total=5_000, connections=8, in_flight=8)
    if seen.refused:
        raise RuntimeError(f"{seen.refused} sends were refused: {seen.first_refusal!r}")
    return {P50: seen.quantile_ms(0.5), P99: seen.quantile_ms(0.99)}


def _without_speed(sample: Sample) -> Sample:
    return {**sample, SPEED: 0.0, ROUNDS: 1.0}


def _while_it_takes_in(master: SprocketBroker, slave: SprocketBroker) -> list[Sample]:
    samples: list[dict[Figure, float]] = []
    began, first = time.monotonic(), end_of_log(slave.port)
    while (end := end_of_log(slave.port)) < end_of_log(master.port):
        samples.append(_sends(master))
    speed = (end - first) / (1 << 20) / (time.monotonic() - began)
    return [{**each, SPEED: speed, ROUNDS: len(samples)} for each in samples]
