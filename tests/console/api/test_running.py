"""Operations are bounded in number and in time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from sprocket.console.api.callers import ANYBODY
from sprocket.console.api.problems import ApiRefusal
from sprocket.console.api.running import ApiSettings, OperationRunner
from sprocket.console.operations.table import OPERATIONS
from sprocket.testing.loop import simulate

LIST = OPERATIONS["topics.list"]


def slow(seconds: float) -> Any:
    async def run(given: Any, asked: Any) -> str:
        await asyncio.sleep(seconds)
        return "done"

    return replace(LIST, run=run)


def test_what_takes_too_long_is_ended() -> None:
    async def main(network: Any) -> None:
        async with OperationRunner(ApiSettings(["10.0.0.1:9876"])) as runner:
            with pytest.raises(ApiRefusal) as refusal:
                await runner.run(slow(1_000), {}, ANYBODY, is_text=True)
            assert refusal.value.status == 504
            assert asyncio.get_running_loop().time() < 100

    simulate(main)


def test_a_crowd_waits_and_what_is_too_much_is_refused() -> None:
    async def main(network: Any) -> None:
        async with OperationRunner(ApiSettings(["10.0.0.1:9876"])) as runner:
            asked = [runner.run(slow(3), {}, ANYBODY, is_text=True) for _ in range(100)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        done = [each for each in answers if each == "done"]
        refused = [each for each in answers if isinstance(each, ApiRefusal)]
        assert (len(done), len(refused)) == (80, 20)
        assert {each.status for each in refused} == {503}
        assert asyncio.get_running_loop().time() < 16

    simulate(main)


def test_a_crowd_that_waits_too_long_is_refused() -> None:
    async def main(network: Any) -> None:
        async with OperationRunner(ApiSettings(["10.0.0.1:9876"])) as runner:
            asked = [runner.run(slow(50), {}, ANYBODY, is_text=True) for _ in range(20)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [each for each in answers if each == "done"] == ["done"] * 16
        assert asyncio.get_running_loop().time() < 55

    simulate(main)
