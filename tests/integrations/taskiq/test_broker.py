"""Taskiq over a real broker: its receiver in this process, and workers in others."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sprocket.testing.node_thread import NodeThread
from tests.support import LONGEST, run

pytest.importorskip("taskiq")

from taskiq import (
    AcknowledgeType,
    Context,
    InMemoryBroker,
    SendTaskError,
    SmartRetryMiddleware,
    TaskiqDepends,
)
from taskiq.brokers.inmemory_broker import InmemoryResultBackend
from taskiq.receiver import Receiver

from sprocket.base.errors import ClosedError, ConfigError, ConnectFailed, UsageError
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.integrations.taskiq import QueueOptions, RocketMQTaskiqBroker

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[3]
WAIT = 60.0


def made(node: NodeThread, queue: str = "taskiq", **named: Any) -> RocketMQTaskiqBroker:
    """A broker whose results are in this process."""
    broker = RocketMQTaskiqBroker(node.nameservers, queue=queue, **named)
    return broker.with_result_backend(InmemoryResultBackend())


@asynccontextmanager
async def started(*brokers: RocketMQTaskiqBroker) -> AsyncIterator[None]:
    for broker in brokers:
        await broker.startup()
    try:
        yield
    finally:
        for broker in brokers:
            await broker.shutdown()


@asynccontextmanager
async def worker(broker: RocketMQTaskiqBroker, **named: Any) -> AsyncIterator[None]:
    """Taskiq's receiver for a broker that is started, until the end of the block."""
    end = asyncio.Event()
    receiver = Receiver(broker, run_startup=False, **{"max_async_tasks": 10, **named})
    listening = asyncio.ensure_future(receiver.listen(end))
    try:
        yield
    finally:
        end.set()
        await asyncio.wait_for(listening, WAIT)


async def result(task: Any) -> Any:
    return await task.wait_result(check_interval=0.01, timeout=WAIT)


async def left(node: NodeThread, topic: str = "taskiq") -> int:
    """How many tasks of a queue are not received yet."""
    async with TaskQueues(node.nameservers) as queues:
        return await queues.count(topic)


async def until(holds: Callable[[], Any], what: str) -> None:
    async with asyncio.timeout(LONGEST):
        while not holds():  # noqa: ASYNC110 - another process, or taskiq, does it
            await asyncio.sleep(0.02)
    assert holds(), what


def test_tasks_run_and_their_results_come_back(own_rocketmq: NodeThread) -> None:
    broker = made(own_rocketmq)

    @broker.task
    async def add(x: int, y: int) -> int:
        return x + y

    @broker.task
    def block(word: str) -> str:
        return word * 2

    async def scenario() -> None:
        async with started(broker), worker(broker):
            assert (await result(await add.kiq(2, 3))).return_value == 5
            assert (await result(await block.kiq("ü"))).return_value == "üü"
            many = [await add.kiq(number, number) for number in range(30)]
            assert [(await result(each)).return_value for each in many] == list(range(0, 60, 2))

    run(scenario())
    run(scenario())  # a broker that was shut down starts again, on another loop


def test_a_delay_waits_at_the_broker(own_rocketmq: NodeThread) -> None:
    broker = made(own_rocketmq)

    @broker.task
    async def now() -> float:
        return asyncio.get_running_loop().time()

    async def scenario() -> None:
        async with started(broker), worker(broker):
            began = asyncio.get_running_loop().time()
            later = await now.kicker().with_labels(delay=1.5).kiq()
            at_once = await now.kiq()
            assert (await result(at_once)).return_value - began < 1.4
            assert (await result(later)).return_value - began >= 1.4

    run(scenario())


def test_what_is_more_urgent_runs_first(own_rocketmq: NodeThread) -> None:
    broker = made(own_rocketmq, options=QueueOptions(max_priority=5))
    ran: list[int] = []

    @broker.task
    async def note(priority: int) -> None:
        ran.append(priority)

    async def scenario() -> None:
        async with started(broker):
            for priority in (0, 5, 2):
                await note.kicker().with_labels(priority=priority).kiq(priority)
            async with worker(broker):
                await until(lambda: len(ran) == 3, "all ran")

    run(scenario())
    assert ran == [5, 2, 0]


def test_a_task_that_fails_is_done_unless_a_middleware_sends_it_again(
    own_rocketmq: NodeThread,
) -> None:
    broker = made(own_rocketmq, options=QueueOptions(invisible_ms=1_000))
    broker.add_middlewares(SmartRetryMiddleware(default_delay=0.3, use_jitter=False))
    tries: list[str] = []

    @broker.task
    async def fails() -> None:
        tries.append("fails")
        raise ValueError("no")

    @broker.task(retry_on_error=True, max_retries=5)
    async def flaky() -> str:
        tries.append("flaky")
        if tries.count("flaky") < 3:
            raise ValueError("not yet")
        return "done"

    async def scenario() -> None:
        async with started(broker):
            async with worker(broker):
                failed = await result(await fails.kiq())
                assert isinstance(failed.error, ValueError)
                await flaky.kiq()
                await until(lambda: tries.count("flaky") == 3, "the third try")
                await asyncio.sleep(1.5)
            assert await left(own_rocketmq) == 0
        assert sorted(tries) == ["fails", "flaky", "flaky", "flaky"]

    run(scenario())


def test_a_task_is_acknowledged_after_it_ran_and_what_a_stop_cuts_off_comes_again(
    own_rocketmq: NodeThread,
) -> None:
    one = made(own_rocketmq, options=QueueOptions(invisible_ms=30_000))
    begun: list[int] = []
    may_end = asyncio.Event()

    @one.task(task_name="slow")
    async def slow(number: int) -> int:
        begun.append(number)
        if len(begun) <= 2:
            await may_end.wait()  # never, in the first worker
        return number

    async def scenario() -> None:
        async with started(one):
            tasks = [await slow.kiq(number) for number in range(4)]
            async with worker(
                one,
                max_async_tasks=2,
                wait_tasks_timeout=0.1,
                ack_type=AcknowledgeType.WHEN_EXECUTED,
            ):
                await until(lambda: len(begun) == 2, "two tasks run")
                assert await left(own_rocketmq) == 2, "a busy worker takes no more than it can run"
        # The broker was shut down, so others get the two at once, long before 30 s are over.
        async with started(one), worker(one), asyncio.timeout(20):
            assert sorted([(await result(task)).return_value for task in tasks]) == [0, 1, 2, 3]
        assert len(begun) == 6

    run(scenario())


def test_what_is_fetched_in_a_batch_and_not_begun_goes_to_others_at_once(
    own_rocketmq: NodeThread,
) -> None:
    one = made(own_rocketmq, batch=4, options=QueueOptions(invisible_ms=30_000, queues=1))
    other = made(own_rocketmq, options=QueueOptions(invisible_ms=30_000))
    ran: list[int] = []

    @one.task(task_name="count")
    async def count(number: int) -> None:
        ran.append(number)
        if number == 0:
            await asyncio.sleep(0.5)

    other.register_task(count.original_func, task_name="count")

    async def scenario() -> None:
        async with started(one, other):
            for number in range(4):
                await count.kiq(number)
            async with worker(one, max_async_tasks=1):
                await until(lambda: ran == [0], "the first runs")
            async with worker(other), asyncio.timeout(20):
                await until(lambda: len(ran) == 4, "the others")
            assert sorted(ran) == [0, 1, 2, 3]
            assert await left(own_rocketmq) == 0

    run(scenario())


def test_tasks_acknowledge_themselves_and_go_to_other_queues(own_rocketmq: NodeThread) -> None:
    broker, mail = made(own_rocketmq), made(own_rocketmq, "mail.out")
    ran: list[bool] = []

    @broker.task(task_name="by_hand", ack_type="manual", queue_name="mail.out")
    async def by_hand(acknowledged: bool, context: Context = TaskiqDepends()) -> None:  # noqa: B008
        ran.append(acknowledged)
        if acknowledged:
            await context.ack()

    mail.register_task(by_hand.original_func, task_name="by_hand")

    async def scenario() -> None:
        async with started(broker, mail), worker(mail):
            await by_hand.kiq(True)
            await by_hand.kiq(False)
            await until(lambda: sorted(ran) == [False, True], "both run")
        async with started(mail), worker(mail):  # what is not acknowledged comes again
            await until(lambda: len(ran) == 3, "one of them again")
        assert sorted(ran) == [False, False, True]
        assert await left(own_rocketmq, "mail%2Eout") == 0
        async with TaskQueues(own_rocketmq.nameservers) as queues:
            assert await queues.exists("mail%2Eout")

    run(scenario())


def test_what_cannot_be_is_refused(own_rocketmq: NodeThread) -> None:
    for wrong in ({"batch": 0}, {"batch": 33}, {"batch": 1.5}, {"queue": ""}):
        with pytest.raises(UsageError):
            RocketMQTaskiqBroker(own_rocketmq.nameservers, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConnectFailed):
        run(RocketMQTaskiqBroker("127.0.0.1:1").startup())
    with pytest.raises(ConfigError):
        RocketMQTaskiqBroker(options=QueueOptions(invisible_ms=5))
    broker = made(own_rocketmq)

    @broker.task
    async def nothing() -> None: ...

    async def scenario() -> None:
        with pytest.raises(SendTaskError) as early:
            await nothing.kiq()
        assert isinstance(early.value.__cause__, ClosedError)
        with pytest.raises(ClosedError):
            await anext(broker.listen())
        async with started(broker):
            with pytest.raises(SendTaskError) as labelled:
                await nothing.kicker().with_labels(delay="soon").kiq()
            assert isinstance(labelled.value.__cause__, UsageError)

    run(scenario())


def test_applications_are_tested_without_a_broker() -> None:
    broker = InMemoryBroker(await_inplace=True)

    @broker.task(delay=1, queue_name="other")
    async def add(x: int, y: int) -> int:
        return x + y

    async def scenario() -> None:
        assert (await result(await add.kiq(1, 2))).return_value == 3

    run(scenario())


def test_the_task_of_a_worker_that_is_killed_is_done_by_another(
    own_rocketmq: NodeThread, tmp_path: Path
) -> None:
    from tests.integrations.taskiq import shop

    notes = tmp_path / "notes"

    def lines(word: str) -> list[str]:
        text = notes.read_text() if notes.exists() else ""
        return [line for line in text.splitlines() if line.startswith(word)]

    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "taskiq", "worker", "tests.integrations.taskiq.shop:broker"]

    async def scenario() -> None:
        async with started(shop.broker):
            await shop.note.kiq(str(notes))
        await until(lambda: lines("begun"), "the task begins")
        os.kill(int(lines("begun")[0].split()[1]), signal.SIGKILL)
        await until(lambda: lines("ended"), "another worker ends it")

    with (tmp_path / "worker.log").open("wb") as log:
        manager = subprocess.Popen(
            [*command, "--workers", "1"],
            env={**os.environ, "PYTHONPATH": path},
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    try:
        run(scenario())
    finally:
        manager.terminate()
        manager.wait(WAIT)
    assert len(set(lines("begun"))) == 2
    assert len(lines("ended")) == 1
