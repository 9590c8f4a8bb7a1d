"""Growing pauses between attempts, as a plain sequence of seconds. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.ports import Entropy


def pauses(
    first: float, longest: float, *, factor: float = 2.0, entropy: Entropy | None = None
) -> Iterator[float]:
    """Yields pauses in seconds without end: `first`, then `factor` times more, up to `longest`.

    With `entropy` each pause is drawn from its upper half, so that many clients that lost the
    same server do not come back in step.
    """
    pause = first
    while True:
        yield pause if entropy is None else pause * (0.5 + entropy.random() / 2)
        pause = min(pause * factor, longest)
