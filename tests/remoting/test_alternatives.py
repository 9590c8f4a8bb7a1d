from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from sprocket.base.errors import ConnectFailed, SprocketError, TopicNotFound
from sprocket.remoting.alternatives import first_answer
from tests.client.fakes import play


def timed(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """A result, and how many virtual seconds it took."""

    async def main() -> tuple[Any, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        return await work, round(loop.time() - began, 3)

    return play(main)


async def ask(name: str) -> str:
    """A server by its name: after so many seconds it answers, fails, or does not know."""
    seconds, _, what = name.partition(" ")
    await asyncio.sleep(float(seconds))
    if what == "fails":
        raise ConnectFailed(name)
    if what == "knows nothing":
        raise TopicNotFound(name)
    return what


def asked(*names: str) -> tuple[Any, float, list[str]]:
    failures: list[SprocketError] = []
    answer, seconds = timed(first_answer(names, ask, failures=failures, unknown=TopicNotFound))
    return answer and answer[1], seconds, [type(each).__name__ for each in failures]


def test_the_first_answer_counts_and_the_next_is_asked_early() -> None:
    assert asked("0.1 a", "0.1 b") == ("a", 0.1, [])
    assert asked("99 a", "0.1 b") == ("b", 0.35, [])
    assert asked("99 a", "99 b", "0.1 c") == ("c", 0.6, [])
    assert asked("0.3 a", "0.2 b") == ("a", 0.3, [])
    assert asked("0.1 fails", "0.1 b") == ("b", 0.2, ["ConnectFailed"])
    assert asked("0.1 fails", "0.1 fails") == (None, 0.2, ["ConnectFailed"] * 2)
    assert asked("1 fails", "2 b") == ("b", 2.25, ["ConnectFailed"])


def test_one_that_does_not_know_gives_the_others_half_a_second() -> None:
    assert asked("0.1 knows nothing", "0.4 b") == ("b", 0.5, ["TopicNotFound"])
    assert asked("0.1 knows nothing", "99 b") == (None, 0.6, ["TopicNotFound"])
    assert asked("99 a", "0.1 knows nothing") == (None, 0.85, ["TopicNotFound"])
    assert asked("0.1 knows nothing", "0.1 knows nothing") == (None, 0.2, ["TopicNotFound"] * 2)


def test_questions_that_are_given_up_are_cancelled() -> None:
    async def main() -> None:
        await first_answer(["99 a", "0 b"], ask, failures=[])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(main)
