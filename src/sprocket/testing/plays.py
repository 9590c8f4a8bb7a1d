"""All scenarios by name, from all modules: one row for each module."""

from __future__ import annotations

from collections.abc import Callable

from sprocket.testing import (
    elected,
    escaped,
    popped,
    popping,
    promoted,
    replicated,
    scenarios,
    staged,
    timed,
    transacted,
)
from sprocket.testing.elected import ELECTED
from sprocket.testing.escaped import ESCAPED
from sprocket.testing.history import HistoryOutcome
from sprocket.testing.popped import POPPED
from sprocket.testing.popping import POPPING
from sprocket.testing.promoted import PROMOTED
from sprocket.testing.replicated import REPLICATED
from sprocket.testing.scenarios import SCENARIOS
from sprocket.testing.staged import STAGED
from sprocket.testing.timed import TIMED
from sprocket.testing.transacted import TRANSACTED

#: Runs one history, by scenario name and seed; raises `Violation`.
Play = Callable[[str, int], HistoryOutcome]

PLAYS: dict[str, Play] = {
    **dict.fromkeys(SCENARIOS, scenarios.play),
    **dict.fromkeys(TIMED, timed.play),
    **dict.fromkeys(TRANSACTED, transacted.play),
    **dict.fromkeys(REPLICATED, replicated.play),
    **dict.fromkeys(POPPED, popped.play),
    **dict.fromkeys(POPPING, popping.play),
    **dict.fromkeys(PROMOTED, promoted.play),
    **dict.fromkeys(ELECTED, elected.play),
    **dict.fromkeys(ESCAPED, escaped.play),
    **dict.fromkeys(STAGED, staged.play),
}
#: A sentence about each scenario.
DOCS: dict[str, str] = {
    **{name: scenario.doc for name, scenario in SCENARIOS.items()},
    **{name: waiting.doc for name, waiting in TIMED.items()},
    **{name: undecided.doc for name, undecided in TRANSACTED.items()},
    **{name: popping.doc for name, popping in POPPED.items()},
    **{name: client.doc for name, client in POPPING.items()},
    **{name: copied.doc for name, copied in REPLICATED.items()},
    **{name: promotion.doc for name, promotion in PROMOTED.items()},
    **{name: group.doc for name, group in ELECTED.items()},
    **{name: escaping.doc for name, escaping in ESCAPED.items()},
    **{name: staging.doc for name, staging in STAGED.items()},
}


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `PLAYS`.

    Raises:
        Violation: an invariant does not hold.
    """
    return PLAYS[name](name, seed)
