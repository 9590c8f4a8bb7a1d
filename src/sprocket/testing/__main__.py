"""Runs simulated histories of a cluster; a scenario and a seed give the same history each time.

python -m sprocket.testing --seeds 1..500 --scenario ordered --scenario storm
python -m sprocket.testing --seed 17 --scenario storm --story
python -m sprocket.testing --seed 17 --scenario ordered --shrink

The exit code is 1 if an invariant did not hold, or if so few messages of a scenario were
acknowledged that the invariants were hardly tested.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.plays import DOCS, PLAYS, play
from sprocket.testing.shrink import shrink

#: Seeds that a process runs before it reports.
_CHUNK = 10
#: The least share of acknowledged messages in all histories of a scenario.
_SHARE_MIN = 0.25


class PlayedHistory(NamedTuple):
    """The result of one history as text; `failure` is empty if no invariant failed."""

    name: str
    seed: int
    text: str
    failure: str
    gaps: dict[str, list[float]]
    sent: int = 0
    acknowledged: int = 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the histories of the arguments; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m sprocket.testing",
        description=__doc__,
        epilog="scenarios:\n" + "\n".join(f"  {name:<18}{doc}" for name, doc in DOCS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="one seed (1)")
    parser.add_argument("--seeds", metavar="A..B", type=_seeds, help="all seeds from A to B")
    parser.add_argument(
        "--scenario", action="append", choices=PLAYS, metavar="NAME", help="may be repeated (all)"
    )
    parser.add_argument("--story", action="store_true", help="print all events")
    parser.add_argument("--shrink", action="store_true", help="find a smaller form that fails too")
    parser.add_argument("--jobs", type=int, default=2, help="processes for many seeds (2)")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.DEBUG if chosen.story else logging.CRITICAL + 1)
    seeds = chosen.seeds or range(chosen.seed, chosen.seed + 1)
    chosen_names = chosen.scenario or list(PLAYS)
    if chosen.shrink:
        return max(_shrink(name, seed) for seed in seeds for name in chosen_names)
    if len(seeds) * len(chosen_names) > _CHUNK and not chosen.story:
        return _play_many(chosen_names, seeds, jobs=chosen.jobs)
    results = [_play(name, seed, prints=chosen.story) for seed in seeds for name in chosen_names]
    for each in results:
        sys.stdout.write(f"{each.text}\n")
    return 1 if any(each.failure for each in results) else 0


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def _play(name: str, seed: int, *, prints: bool = False) -> PlayedHistory:
    before = time.process_time()
    try:
        outcome = play(name, seed)
    except Violation as violation:
        if prints and violation.journal is not None:
            _print_events(violation.journal)
        return PlayedHistory(
            name, seed, f"{name} {seed}: {violation}", str(violation).splitlines()[0], {}
        )
    if prints:
        _print_events(outcome.journal)
    text = (
        f"{name} {seed}: history {outcome.history}, {outcome.seconds:.1f} s in "
        f"{time.process_time() - before:.2f} s, {outcome.sent} sent, "
        f"{outcome.acknowledged} acknowledged, {outcome.delivered} delivered"
    )
    gaps = _gaps(outcome.journal)
    return PlayedHistory(name, seed, text, "", gaps, outcome.sent, outcome.acknowledged)


def _play_chunk(chunk: tuple[str, range]) -> list[PlayedHistory]:
    name, seeds = chunk
    return [_play(name, seed) for seed in seeds]


def _play_many(names: Iterable[str], seeds: range, *, jobs: int) -> int:
    """Runs histories in processes, prints the progress and a summary; returns the exit code."""
    names = list(names)
    chunks = [
        (name, seeds[at : at + _CHUNK]) for at in range(0, len(seeds), _CHUNK) for name in names
    ]
    began, done = time.monotonic(), 0
    failures: dict[str, list[PlayedHistory]] = defaultdict(list)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    gaps: dict[str, list[float]] = defaultdict(list)
    with ProcessPoolExecutor(jobs) as pool:
        for one in _flat(pool.map(_play_chunk, chunks)):
            done += 1
            for cause, seconds in one.gaps.items():
                gaps[f"{one.name}: {cause}"] += seconds
            totals[one.name] += Counter(sent=one.sent, acknowledged=one.acknowledged)
            if one.failure:
                failures[one.name].append(one)
                sys.stdout.write(f"\r{one.name} {one.seed}: {one.failure}\n")
            if done % _CHUNK == 0:
                total, seconds_gone = len(seeds) * len(names), time.monotonic() - began
                sys.stdout.write(f"\r{done} of {total} histories, {seconds_gone:.0f} s ")
                sys.stdout.flush()
    sys.stdout.write(f"\n{'scenario':<18}{'histories':>10}{'failed':>8}{'acknowledged':>14}\n")
    shares = {name: totals[name]["acknowledged"] / max(1, totals[name]["sent"]) for name in names}
    for name in names:
        words = f"{name:<18}{len(seeds):>10}{len(failures[name]):>8}{shares[name]:>14.0%}"
        sys.stdout.write(f"{words}{'' if shares[name] >= _SHARE_MIN else '  too little'}\n")
    _print_gaps(gaps)
    return 1 if any(failures.values()) or min(shares.values()) < _SHARE_MIN else 0


def _flat(chunks: Iterable[list[PlayedHistory]]) -> Iterator[PlayedHistory]:
    for chunk in chunks:
        yield from chunk


def _gaps(journal: Journal) -> dict[str, list[float]]:
    """Seconds for which queues had no owner, or two, by group and cause."""
    return {
        f"{record.name} after {cause}{words}": seconds
        for record in journal.groups.values()
        for words, causes in (("", record.gaps), (" (two)", record.overlaps))
        for cause, seconds in causes.items()
    }


def _print_gaps(gaps: dict[str, list[float]]) -> None:
    if gaps:
        sys.stdout.write(
            "\nseconds for which a queue had no owner, or two: number, median, 99 %, longest\n"
        )
    for name, seconds in sorted(gaps.items()):
        ranked = sorted(seconds)
        sys.stdout.write(
            f"{name:<44}{len(ranked):>8}{statistics.median(ranked):>8.2f}"
            f"{ranked[int(len(ranked) * 0.99)]:>8.2f}{ranked[-1]:>8.2f}\n"
        )


def _shrink(name: str, seed: int) -> int:
    failure = shrink(name, seed)
    if failure is None:
        sys.stdout.write(f"{name} {seed}: nothing fails, or it has no smaller form\n")
        return 0
    if failure.journal is not None:
        _print_events(failure.journal)
    sys.stdout.write(f"{name} {seed}: {str(failure).splitlines()[0]}\n")
    return 1


def _print_events(journal: Journal) -> None:
    sys.stdout.writelines(f"{event}\n" for event in journal.events)


if __name__ == "__main__":
    sys.exit(main())
