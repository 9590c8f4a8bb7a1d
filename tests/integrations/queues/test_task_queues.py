"""Task queues in a simulated cluster: what is due, held, settled, counted and lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.base.errors import ConfigError, UsageError
from sprocket.integrations.queues.options import QueueOptions
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.process import SimulatedProcess

MEMBER = QueueOptions(invisible_ms=6_000, create_topics=False)


class Workers:
    """A cluster, and processes that work on its task queues."""

    def __init__(self, network: Network) -> None:
        self.cluster = Cluster(network, "tasks")

    async def join(self, name: str, options: QueueOptions = MEMBER) -> Worker:
        process, world = self.cluster.client(name)
        queues = TaskQueues(self.cluster.nameserver_addresses, options, world)
        await process.run(queues.start())
        return Worker(process, queues)


class Worker:
    """One of these processes."""

    def __init__(self, process: SimulatedProcess, queues: TaskQueues) -> None:
        self.process, self.queues = process, queues

    async def take(self, count: int = 8, wait_ms: float = 2_000) -> list[Any]:
        return await self.process.run(self.queues.receive("work", count, wait_ms))

    async def send(self, *bodies: bytes, **named: Any) -> None:
        for body in bodies:
            await self.process.run(self.queues.send("work", body, **named))

    async def call(self, work: Awaitable[Any]) -> Any:
        return await self.process.run(work)  # type: ignore[arg-type]


def play(main: Callable[[Workers], Awaitable[None]], *, seed: int = 1) -> None:
    async def run(network: Network) -> None:
        workers = Workers(network)
        await workers.cluster.start()
        await asyncio.sleep(3.0)
        await main(workers)
        await workers.cluster.stop()

    simulate(run, seed=seed)


def test_a_task_is_delivered_to_one_worker_and_not_again_when_it_is_acknowledged() -> None:
    async def main(workers: Workers) -> None:
        one, other = await workers.join("one"), await workers.join("other")
        await one.send(b"0", b"1", b"2")
        got = await one.take(2)
        rest = await other.take()
        assert sorted(each.body for each in got + rest) == [b"0", b"1", b"2"]
        await one.call(one.queues.acknowledge(got))
        await other.call(other.queues.acknowledge(rest))
        await asyncio.sleep(20.0)
        assert await one.take() == []
        for each in (one, other):
            await each.call(each.queues.close())

    play(main)


def test_a_task_may_take_longer_than_the_invisible_time_while_its_process_lives() -> None:
    async def main(workers: Workers) -> None:
        one, other = await workers.join("one"), await workers.join("other")
        await one.send(b"long")
        got = await one.take()
        await asyncio.sleep(90.0)
        assert await other.take() == []
        await one.call(one.queues.acknowledge(got))
        await asyncio.sleep(20.0)
        assert await other.take() == []
        for each in (one, other):
            await each.call(each.queues.close())

    play(main)


def test_the_task_of_a_worker_that_is_killed_comes_to_another_within_its_invisible_time() -> None:
    async def main(workers: Workers) -> None:
        one, other = await workers.join("one"), await workers.join("other")
        await other.send(b"task")
        (first,) = await one.take()
        one.process.kill()
        began = asyncio.get_running_loop().time()
        again: list[Any] = []
        while not again:
            again = await other.take(wait_ms=5_000)
        assert asyncio.get_running_loop().time() - began < 12.0
        assert (again[0].body, again[0].reconsume_times) == (b"task", 1)
        assert first.reconsume_times == 0
        await other.call(other.queues.acknowledge(again))
        await other.call(other.queues.close())

    play(main)


def test_closing_gives_back_what_is_not_settled() -> None:
    async def main(workers: Workers) -> None:
        one, other = await workers.join("one"), await workers.join("other")
        await one.send(b"task")
        await one.take()
        await one.call(one.queues.close())
        began = asyncio.get_running_loop().time()
        again: list[Any] = []
        while not again:
            again = await other.take(wait_ms=5_000)
        assert asyncio.get_running_loop().time() - began < 5.0
        await other.call(other.queues.close())

    play(main)


def test_a_task_waits_at_the_broker_and_a_long_wait_is_made_of_hops() -> None:
    async def main(workers: Workers) -> None:
        hopping = QueueOptions(invisible_ms=6_000, create_topics=False, delay_max_ms=10_000)
        one = await workers.join("one", hopping)
        due = one.queues.now_ms() + 25_000
        await one.send(b"late", due_ms=due)
        got: list[Any] = []
        while not got:
            got = await one.take(wait_ms=3_000)
        assert due - 1_000 <= one.queues.now_ms() < due + 5_000
        await one.call(one.queues.acknowledge(got))
        await asyncio.sleep(30.0)
        assert await one.take() == []
        await one.call(one.queues.close())

    play(main)


def test_a_rejected_task_is_a_dead_letter_and_a_purge_counts_what_it_takes() -> None:
    async def main(workers: Workers) -> None:
        one = await workers.join("one")
        await one.send(b"poison", b"1", b"2")
        got = await one.take(1)
        await one.call(one.queues.bury(got[0]))
        assert await one.call(one.queues.count("work")) == 2
        assert await one.call(one.queues.purge("work")) == 2
        assert await one.call(one.queues.count("work")) == 0
        assert await one.call(one.queues.purge("nobody-has-it")) == 0
        assert len(await one.call(one.queues.reader.queues("%DLQ%work"))) == 1
        await one.call(one.queues.close())

    play(main)


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong in (
        {"invisible_ms": 0}, {"queues": True}, {"delay_max_ms": 1.5}, {"prefix": 3},
        {"max_priority": 256}, {"max_priority": True}, {"create_topics": 1},
        {"client": {"no_such": 1}}, {"client": 3},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            QueueOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        TaskQueues("no port", QueueOptions())
    assert "wonder" not in repr(QueueOptions(client={"secret_key": "wonder"}))
