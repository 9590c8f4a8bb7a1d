"""All scenarios by name, whichever module tells them: one row for each module of scenarios."""

from __future__ import annotations

from collections.abc import Callable

from sprocket.testing import scenarios, timed
from sprocket.testing.history import Outcome
from sprocket.testing.scenarios import SCENARIOS
from sprocket.testing.timed import TIMED

#: Plays one history by name of scenario and seed; raises `Violation`.
Play = Callable[[str, int], Outcome]

PLAYS: dict[str, Play] = {
    **dict.fromkeys(SCENARIOS, scenarios.play),
    **dict.fromkeys(TIMED, timed.play),
}
#: What each of them is about, in a sentence.
DOCS: dict[str, str] = {
    **{name: scenario.doc for name, scenario in SCENARIOS.items()},
    **{name: waiting.doc for name, waiting in TIMED.items()},
}


def play(name: str, seed: int) -> Outcome:
    """Plays a scenario of `PLAYS`.

    Raises:
        Violation: an invariant does not hold.
    """
    return PLAYS[name](name, seed)
