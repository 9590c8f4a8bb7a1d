"""All scenarios by name, whichever module tells them: one row for each module of scenarios."""

from __future__ import annotations

from collections.abc import Callable

from sprocket.testing import consumption, scenarios, timed
from sprocket.testing.consumption import CONSUMPTION
from sprocket.testing.scenarios import SCENARIOS, Outcome
from sprocket.testing.timed import TIMED

#: Plays one history by name of scenario and seed; raises `Violation`.
Play = Callable[[str, int], Outcome]

_MODULES: tuple[tuple[tuple[str, ...], Play], ...] = (
    (tuple(SCENARIOS), scenarios.play),
    (tuple(CONSUMPTION), consumption.play),
    (tuple(TIMED), timed.play),
)

PLAYS: dict[str, Play] = {name: play for names, play in _MODULES for name in names}


def play(name: str, seed: int) -> Outcome:
    """Plays a scenario of `PLAYS`.

    Raises:
        Violation: an invariant does not hold.
    """
    return PLAYS[name](name, seed)
