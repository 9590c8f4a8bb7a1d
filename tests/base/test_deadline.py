"""One time budget for a whole operation."""

from __future__ import annotations

import asyncio

from sprocket.base.deadline import Deadline
from tests.support import run


def test_remaining_counts_down_and_goes_below_zero() -> None:
    deadline = Deadline(10.0)
    assert deadline.remaining(7.5) == 2.5
    assert deadline.remaining(11.0) == -1.0


def test_left_is_never_negative() -> None:
    async def main() -> None:
        assert Deadline.after(-5).left() == 0.0
        assert 0.9 < Deadline.after_ms(1000).left() <= 1.0

    run(main())


def test_never_does_not_come() -> None:
    async def main() -> None:
        never = Deadline.never()
        assert never.is_never
        assert never.left() == float("inf")
        assert not never.sooner(5).is_never

    run(main())


def test_sooner_only_shortens() -> None:
    async def main() -> None:
        now = asyncio.get_running_loop().time()
        deadline = Deadline(now + 1)
        assert deadline.sooner(60).at == deadline.at
        assert deadline.sooner(0).at <= asyncio.get_running_loop().time()

    run(main())
