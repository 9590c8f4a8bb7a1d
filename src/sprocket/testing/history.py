"""One history: from a name and a seed to how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a history ended.

    Attributes:
        history: a digest of everything that happened; equal for equal runs.
        seconds: how long it took, in virtual time.
        sent, acknowledged, delivered: messages, messages, and calls of listeners.
        journal: what happened, for people.
    """

    history: str
    seconds: float
    sent: int
    acknowledged: int
    delivered: int
    journal: Journal


class Run(Protocol):
    """Something that plays one history."""

    journal: Journal

    async def play(self) -> Outcome:
        """Plays it to its end; raises `Violation`."""
        ...


def tell(name: str, seed: int, run: Callable[[Network, str], Run]) -> Outcome:
    """Plays a history in a world of its own.

    Args:
        name, seed: what all that is random in it comes from.
        run: given the network and that seed, what plays it.

    Raises:
        Violation: an invariant does not hold, or nothing was acknowledged, so that none was put to
            the test; the text has scenario, seed and a story.
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
