"""Exponential backoff: growing pauses between attempts, in seconds. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.ports import Entropy


def pauses(
    first: float, longest: float, *, factor: float = 2.0, entropy: Entropy | None = None
) -> Iterator[float]:
    """Yields an endless sequence of pauses in seconds: `first`, then each pause times `factor`.

    No pause is longer than `longest`. With `entropy`, each pause is a random value between half
    of it and the whole, so that many clients of a lost server do not all reconnect at once.
    """
    pause = first
    while True:
        yield pause if entropy is None else pause * (0.5 + entropy.random() / 2)
        pause = min(pause * factor, longest)
