"""Values that are fetched once, shared, and then kept fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ConnectFailed, RouteNotFound
from sprocket.proxy.brokers.fresh_values import FreshValues
from sprocket.testing.loop import simulate


class Source:
    """Counts fetches; `error` makes them fail."""

    def __init__(self) -> None:
        self.fetches = 0
        self.error: Exception | None = None
        self.seconds = 1.0

    async def fetch(self, name: str) -> str:
        self.fetches += 1
        number = self.fetches
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return f"{name} {number}"


def play(test: Callable[[FreshValues[str], Source], Awaitable[None]]) -> None:
    async def main() -> None:
        source = Source()
        values = FreshValues(source.fetch, fresh_seconds=20, gone=(RouteNotFound,), values_max=3)
        await test(values, source)
        await values.close()

    simulate(lambda network: main())


def test_those_that_ask_together_share_a_fetch() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        assert values.known("a") is None
        deadline = Deadline.after(5)
        assert await asyncio.gather(*(values.of("a", deadline) for _ in range(5))) == ["a 1"] * 5
        assert values.known("a") == "a 1"
        assert source.fetches == 1

    play(test)


def test_an_old_value_is_given_and_fetched_meanwhile() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        await values.of("a", Deadline.after(5))
        await asyncio.sleep(21)
        assert [values.known("a"), values.known("a")] == ["a 1", "a 1"]
        await asyncio.sleep(2)
        assert values.known("a") == "a 2"
        assert source.fetches == 2

    play(test)


def test_an_old_value_stays_while_nobody_answers_and_goes_when_it_is_gone() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        await values.of("a", Deadline.after(5))
        source.error = ConnectFailed("away")
        await asyncio.sleep(21)
        assert values.known("a") == "a 1"
        await asyncio.sleep(2)
        assert [values.known("a") for _ in range(100)] == ["a 1"] * 100
        assert source.fetches == 2
        source.error = RouteNotFound("gone")
        await asyncio.sleep(21)
        assert values.known("a") == "a 1"
        await asyncio.sleep(2)
        assert values.known("a") is None

    play(test)


def test_a_fetch_outlives_who_gave_up() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        with pytest.raises(CallTimeout):
            await values.of("a", Deadline.after(0.5))
        assert await values.of("a", Deadline.after(5)) == "a 1"
        values.age("a")
        assert values.known("a") is None

    play(test)


def test_values_are_bounded() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        for name in "abcd":
            await values.of(name, Deadline.after(5))
        assert values.known("a") is None
        assert values.all() == ["b 2", "c 3", "d 4"]

    play(test)


def test_a_doubted_value_counts_again_if_nobody_answers() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        await values.of("a", Deadline.after(5))
        values.age("a")
        source.error = ConnectFailed("away")
        assert await values.of("a", Deadline.after(5)) == "a 1"
        assert values.known("a") == "a 1"
        source.error = None
        values.age("a")
        assert await values.of("a", Deadline.after(5)) == "a 3"
        source.error = RouteNotFound("gone")
        values.age("a")
        with pytest.raises(RouteNotFound):
            await values.of("a", Deadline.after(5))

    play(test)


def test_a_fetch_that_began_before_a_doubt_does_not_settle_it() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        first = asyncio.ensure_future(values.of("a", Deadline.after(5)))
        await asyncio.sleep(0.5)
        values.age("a")
        assert await values.of("a", Deadline.after(5)) == "a 2"
        assert await first == "a 1"
        assert values.known("a") == "a 2"

    play(test)


def test_a_newer_value_is_fetched_once_and_others_have_the_older_one_meanwhile() -> None:
    async def test(values: FreshValues[str], source: Source) -> None:
        loop = asyncio.get_running_loop()
        await values.of("a", Deadline.after(5))
        assert await values.newer("a", Deadline.after(5), loop.time() - 1.5) == "a 1"
        await asyncio.sleep(3)
        since = loop.time() - 1
        wanted = [
            asyncio.ensure_future(values.newer("a", Deadline.after(5), since)) for _ in range(9)
        ]
        await asyncio.sleep(0.5)
        assert values.known("a") == "a 1"
        assert await asyncio.gather(*wanted) == ["a 2"] * 9
        assert await values.newer("a", Deadline.after(5), since) == "a 2"
        assert source.fetches == 2

    play(test)
