"""`python -m bench [NAME …] [--quick] [--rounds N] [--only PART]`: measures and prints tables."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bench import (
    catchup,
    clients,
    consume,
    engine,
    filters,
    footprint,
    grpc,
    hostile,
    pop,
    pop_client,
    processes,
    pull,
    pythons,
    rebalance,
    replicas,
    scale,
    send,
    store,
    timers,
    tls,
    transactions,
)
from bench.brokers import java_missing
from bench.spark import compare

BENCHES = {
    "send": send,
    "pull": pull,
    "pop": pop,
    "footprint": footprint,
    "clients": clients,
    "consume": consume,
    "pop-client": pop_client,
    "rebalance": rebalance,
    "replicas": replicas,
    "scale": scale,
    "processes": processes,
    "pythons": pythons,
    "catchup": catchup,
    "filters": filters,
    "transactions": transactions,
    "store": store,
    "spark": compare,
    "timers": timers,
    "hostile": hostile,
    "tls": tls,
    "grpc": grpc,
    "engine": engine,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench", description="Speed, as ratios of two things measured side by side."
    )
    parser.add_argument("name", nargs="*", help=f"which: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer cases, smaller runs")
    parser.add_argument("--rounds", type=int, default=3, help="counted runs of each side")
    parser.add_argument(
        "--only", action="append", metavar="PART",
        help=f"a part, may be given again: of spark {', '.join(compare.PARTS)}; of scale "
        f"{', '.join(scale.PARTS)}",
    )  # fmt: skip
    asked = parser.parse_args()
    unknown = sorted(set(asked.name) - set(BENCHES))
    if unknown:
        parser.error(f"no bench is named {unknown[0]}; there are {', '.join(BENCHES)}")
    parts = {"spark": compare.PARTS, "scale": scale.PARTS}.get("".join(asked.name), ())
    if strange := sorted(set(asked.only or ()) - set(parts)):
        parser.error(f"--only {strange[0]}: no part of {' '.join(asked.name)}")
    console = Console()
    console.print(f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}")
    console.print(f"Python {sys.version}")
    reason = java_missing()
    if reason:
        console.print(f"without the Java column: {reason}")
    for name in asked.name or BENCHES:
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder:
            some = {"only": asked.only} if asked.only else {}
            BENCHES[name].main(
                console, Path(folder), quick=asked.quick, rounds=asked.rounds, **some
            )


if __name__ == "__main__":
    main()
