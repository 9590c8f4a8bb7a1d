"""Whatever a user's function raises or does, its consumer or producer goes on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sprocket.client.assign import average
from sprocket.client.base.user_code import call_contained
from sprocket.client.config import ConsumerConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from tests.client.fakes import FakeBroker, play, queue_of, until, world
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


class Failing:
    """A user's function that raises the first times it is called."""

    def __init__(self, error: type[BaseException], result: Any = None) -> None:
        self.left = 3
        self.error = error
        self.result = result

    def __call__(self, *arguments: Any) -> Any:
        if self.left:
            self.left -= 1
            raise self.error
        return self.result(*arguments) if callable(self.result) else self.result


@pytest.mark.parametrize("error", ON_THE_LOOP, ids=lambda each: each.__name__)
def test_a_strategy_may_raise_anything(error: type[BaseException]) -> None:
    async def main() -> None:
        strategy = Failing(error, average)

        def assign(member: str, queues: Sequence[QueueId], members: Sequence[str]) -> list[QueueId]:
            found: list[QueueId] = strategy(member, queues, members)
            return found

        seen: list[bytes] = []

        async def take(message: StoredMessage) -> None:
            seen.append(message.body)

        async with FakeBroker({"orders": 1}) as broker:
            consumer = PushConsumer(
                "readers",
                nameservers=broker.address,
                start="first",
                config=ConsumerConfig(assign=assign),
                world=world(),
            )
            consumer.subscribe("orders", listener=take)
            broker.put("orders")
            async with consumer:
                await until(lambda: seen and not strategy.left)

    play(main)


@pytest.mark.parametrize("error", ON_THE_LOOP, ids=lambda each: each.__name__)
def test_what_is_told_of_an_assignment_may_raise_anything(error: type[BaseException]) -> None:
    async def main() -> None:
        told = Failing(error)
        async with (
            FakeBroker({"orders": 1}) as broker,
            LitePullConsumer(
                "readers", nameservers=broker.address, start="first", world=world()
            ) as consumer,
        ):
            consumer.on_assignment(lambda topic, queues: told(topic, queues))
            for _ in range(3):
                consumer.subscribe("orders")
                broker.put("orders")
                await until(lambda: consumer.assignment)
                assert await consumer.poll()
                consumer.unsubscribe("orders")
                await until(lambda: queue_of("orders") not in consumer.assignment)
            assert not told.left

    play(main)


@pytest.mark.parametrize("error", ON_THE_LOOP, ids=lambda each: each.__name__)
def test_a_selector_may_raise_anything_and_the_producer_goes_on(
    error: type[BaseException],
) -> None:
    async def main() -> None:
        selector = Failing(error, lambda queues, message: queues[0])

        async with (
            FakeBroker({"orders": 1}) as broker,
            Producer("shop", nameservers=broker.address, world=world()) as producer,
        ):
            for _ in range(3):
                with pytest.raises((error, RuntimeError)):
                    await producer.send(
                        Message("orders", b"x"),
                        queue_selector=lambda queues, message: selector(queues, message),
                    )
            await producer.send(
                Message("orders", b"x"),
                queue_selector=lambda queues, message: selector(queues, message),
            )

    play(main)


#: A program whose users' functions never return: what it calls of a client, and how.
_BLOCKED = """
import asyncio, threading, time
from sprocket import ConsumerConfig, Message, Outcome, Producer, PushConsumer, Standalone
from sprocket.client.base.threads import call_in_thread

began = threading.Event()

def block(*arguments):
    began.set()
    time.sleep(3600)

async def main():
    async with Standalone() as node:
        settings = {"nameservers": node.nameserver_address}
        PLACE
        while not began.is_set():
            await asyncio.sleep(0.01)
        CLOSE

asyncio.run(main())
print("ended", flush=True)
"""
_CONSUMER = """
        config = ConsumerConfig(drain_ms=100)
        consumer = PushConsumer("g", start="first", ordered=ORDERED, config=config, **settings)
        consumer.subscribe("T", listener=block)
        await consumer.start()
        async with Producer("p", **settings) as producer:
            await producer.send(Message("T", b"x"))
"""


@pytest.mark.parametrize(
    ("place", "close"),
    [
        (_CONSUMER.replace("ORDERED", "False"), "await consumer.close()"),
        (_CONSUMER.replace("ORDERED", "True"), "await consumer.close()"),
        ("task = asyncio.ensure_future(call_in_thread(block))", "task.cancel()"),
    ],
    ids=["concurrent", "ordered", "called once"],
)
def test_a_function_that_never_returns_does_not_keep_the_process(place: str, close: str) -> None:
    program = _BLOCKED.replace("PLACE", place.strip()).replace("CLOSE", close)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


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
