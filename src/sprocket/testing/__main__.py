"""Plays simulated histories: `python -m sprocket.testing --seed 17 --scenario storm --story`."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.scenarios import SCENARIOS, play


def main(arguments: list[str] | None = None) -> int:
    """Plays what the arguments say; 0 if everything held."""
    parser = argparse.ArgumentParser(
        prog="python -m sprocket.testing",
        description="Plays a cluster's history from a seed, the same every time.",
    )
    names = ", ".join(SCENARIOS)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there on (1)")
    parser.add_argument("--scenario", choices=SCENARIOS, help=f"one of {names}; all by default")
    parser.add_argument("--story", action="store_true", help="tell everything that happened")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.DEBUG if chosen.story else logging.CRITICAL)
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        for name in [chosen.scenario] if chosen.scenario else SCENARIOS:
            failed += not _play(name, seed, tells=chosen.story)
    return 1 if failed else 0


def _play(name: str, seed: int, *, tells: bool) -> bool:
    before = time.process_time()
    try:
        outcome = play(name, seed)
    except Violation as violation:
        if tells and violation.journal is not None:
            _tell(violation.journal)
        sys.stdout.write(f"{name} {seed}: {violation}\n")
        return False
    if tells:
        _tell(outcome.journal)
    sys.stdout.write(
        f"{name} {seed}: history {outcome.history}, {outcome.seconds:.1f} s in "
        f"{time.process_time() - before:.2f} s, {outcome.sent} sent, "
        f"{outcome.acknowledged} acknowledged, {outcome.delivered} delivered\n"
    )
    return True


def _tell(journal: Journal) -> None:
    sys.stdout.writelines(f"{event}\n" for event in journal.events)


if __name__ == "__main__":
    sys.exit(main())
