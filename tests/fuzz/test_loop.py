"""The loop that all inputs of a target share."""

from __future__ import annotations

import asyncio

import pytest

from tests.fuzz.loop import run


def test_each_input_has_the_same_loop_and_leaves_no_task() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def leaves_one() -> None:
        left.append(asyncio.create_task(asyncio.sleep(60)))

    left: list[asyncio.Task[None]] = []
    assert run(loop()) is run(loop())
    with pytest.raises(AssertionError):
        run(leaves_one())
    assert left[0].cancelled()
    run(loop())
