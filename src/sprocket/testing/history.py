"""Runs one history, given by a name and a seed, and returns its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


@dataclass(frozen=True, slots=True)
class HistoryOutcome:
    """The outcome of a history.

    Attributes:
        history: a digest of all events; equal for equal runs.
        seconds: its length in virtual time.
        sent, acknowledged: numbers of messages.
        delivered: number of calls of listeners.
        journal: the events, for people.
    """

    history: str
    seconds: float
    sent: int
    acknowledged: int
    delivered: int
    journal: Journal


class HistoryRun(Protocol):
    """A run of one history."""

    journal: Journal

    async def play(self) -> HistoryOutcome:
        """Runs the history to its end; raises `Violation`."""
        ...


def play_history(name: str, seed: int, run: Callable[[Network, str], HistoryRun]) -> HistoryOutcome:
    """Runs a history on a simulated loop of its own.

    Args:
        name, seed: the seed of everything random in it.
        run: makes the run, given the network and that seed.

    Raises:
        Violation: an invariant does not hold, or nothing was acknowledged, so that no invariant was
            tested; the text has scenario, seed and a story.
    """
    words = f"{name} {seed}"
    network = Network(words)
    running = run(network, words)
    try:
        outcome = simulate(lambda _: running.play(), network=network)
        if not outcome.acknowledged:
            raise Violation(f"nothing of {outcome.sent} messages was acknowledged")
        return outcome
    except AssertionError as error:
        again = f"make sim SCENARIO={name} SEED={seed} ARGS=--story"
        violation = Violation(f"{error}\nplay it again: {again}")
        violation.journal = running.journal
        raise violation from error
