"""Whatever a user's function raises or does, its consumer or producer goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sprocket.client.base.user_code import call_contained
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import StoredMessage
from tests.client.fakes import FakeBroker, play, until, world
from tests.support import run


class Unforeseen(BaseException):
    """Not even an Exception."""


#: Ctrl-C, which KeyboardInterrupt is on the loop, ends a program; in a thread it is an error.
ON_THE_LOOP = [ValueError, StopIteration, StopAsyncIteration, SystemExit, Unforeseen]
IN_A_THREAD = [*ON_THE_LOOP, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError]


def consumer_of(broker: FakeBroker, *, ordered: bool) -> PushConsumer:
    return PushConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        ordered=ordered,
        config=ConsumerConfig(concurrency=2, suspend_ms=100),
        world=world(),
    )


@pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
@pytest.mark.parametrize("batch", [None, 2], ids=["single", "batch"])
@pytest.mark.parametrize("error", IN_A_THREAD, ids=lambda each: each.__name__)
def test_a_plain_listener_may_raise_anything(
    error: type[BaseException], batch: int | None, ordered: bool
) -> None:
    seen: list[bytes] = []
    failures = [error() for _ in range(5)]

    def take(given: Any) -> None:
        if failures:
            raise failures.pop()
        seen.extend(each.body for each in (given if batch else [given]))

    play(lambda: all_arrive(take, seen, batch, ordered))


@pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
@pytest.mark.parametrize("batch", [None, 2], ids=["single", "batch"])
@pytest.mark.parametrize("error", ON_THE_LOOP, ids=lambda each: each.__name__)
def test_a_listener_on_the_loop_may_raise_anything(
    error: type[BaseException], batch: int | None, ordered: bool
) -> None:
    seen: list[bytes] = []
    failures = [error() for _ in range(5)]

    async def take(given: Any) -> None:
        if failures:
            raise failures.pop()
        seen.extend(each.body for each in (given if batch else [given]))

    play(lambda: all_arrive(take, seen, batch, ordered))


async def all_arrive(
    listener: Callable[[Any], Any], seen: list[bytes], batch: int | None, ordered: bool
) -> None:
    async with (
        FakeBroker({"orders": 1}) as broker,
        consumer_of(broker, ordered=ordered) as consumer,
    ):
        consumer.subscribe("orders", listener=listener, batch=batch)
        for number in range(6):
            broker.put("orders", body=str(number))
        await until(lambda: len(set(seen)) == 6, 300)


@pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
def test_a_listener_may_close_its_own_consumer(ordered: bool) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            consumer = consumer_of(broker, ordered=ordered)
            seen: list[bytes] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                seen.append(message.body)
                await consumer.close()

            broker.put("orders")
            began = asyncio.get_running_loop().time()
            await consumer.start()
            await consumer.wait_closed()
            assert len(seen) == 1
            assert asyncio.get_running_loop().time() - began < 5

    play(main)


@pytest.mark.parametrize("error", IN_A_THREAD, ids=lambda each: each.__name__)
def test_a_future_can_carry_what_a_contained_function_raises(error: type[BaseException]) -> None:
    def fail(number: int) -> None:
        raise error(number)

    async def main() -> None:
        wanted = RuntimeError if not issubclass(error, ValueError | StopAsyncIteration) else error
        with pytest.raises(wanted):
            await asyncio.to_thread(call_contained, fail, 7)

    run(main())


def test_a_contained_function_gets_its_arguments_and_returns() -> None:
    assert call_contained(divmod, 7, 2) == (3, 1)
