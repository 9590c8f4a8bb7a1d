"""Listeners in processes of their own."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import sprocket
from sprocket import Message, UsageError
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.processes import ListenerFailed, ListenerProcesses, check_portable
from sprocket.store.config import StoreConfig
from tests.client import listeners
from tests.support import LONGEST, run

pytestmark = pytest.mark.process

DELAYS = StoreConfig(delay_levels=" ".join(["1s"] * 18))


@asynccontextmanager
async def consuming(
    config: ConsumerConfig,
) -> AsyncIterator[tuple[sprocket.PushConsumer, sprocket.Producer]]:
    async with (
        sprocket.Standalone(configs=[DELAYS]) as node,
        sprocket.Producer("senders", nameservers=node.nameserver_address) as producer,
        sprocket.PushConsumer(
            "readers", nameservers=node.nameserver_address, start="first", config=config
        ) as consumer,
    ):
        yield consumer, producer


def written(folder: Path) -> dict[str, list[list[str]]]:
    """By file, who had the message: process, tag, returns."""
    return {
        file.name: [line.split() for line in file.read_text().splitlines()]
        for file in sorted(folder.iterdir())
    }


async def until_written(folder: Path, entries: int) -> dict[str, list[list[str]]]:
    while True:
        found = written(folder)
        if sum(map(len, found.values())) >= entries:
            return found
        await asyncio.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_that_dies_takes_one_message_with_it_which_comes_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with consuming(ConsumerConfig(processes=2)) as (consumer, producer):
            consumer.subscribe("orders", listener=listeners.do_as_tagged)
            (queue, *_) = await producer.queues("orders")
            for tag in ("fine", "die", "raise", "later", "nonsense", "fine"):
                await producer.send(Message("orders", bytes(tmp_path), tag=tag), queue=queue)
            found = await until_written(tmp_path, 10)
            had = [entry for entries in found.values() for entry in entries]
            again = sorted(tag for _, tag, times in had if times == "1")
            assert again == ["die", "later", "nonsense", "raise"]
            assert str(os.getpid()) not in {process for process, _, _ in had}
            statistics = consumer.statistics().topics["orders"]
            assert (statistics.failed, statistics.expired) == (4, 0)

    run(main())


def test_batches_go_there_too_and_parts_of_them_come_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with consuming(ConsumerConfig(processes=1)) as (consumer, producer):
            (queue, *_) = await producer.queues("orders")
            batch = [Message("orders", bytes(tmp_path), tag=tag) for tag in (None, "bad", None)]
            await producer.send_batch(batch, queue=queue)
            consumer.on("orders", batch=8)(listeners.count_bodies)
            found = await until_written(tmp_path, 4)
            assert [(tag, times) for _, tag, times in found["0"]] == [
                ("None", "0"),
                ("bad", "1"),
            ]
            assert {process for entries in found.values() for process, _, _ in entries}

    run(main())


def test_closing_ends_processes_that_are_busy(tmp_path: Path) -> None:
    async def main() -> list[int]:
        config = ConsumerConfig(processes=2, drain_ms=100)
        async with consuming(config) as (consumer, producer):
            consumer.subscribe("orders", listener=listeners.take_long)
            (queue, *_) = await producer.queues("orders")
            for _ in range(2):
                await producer.send(Message("orders", bytes(tmp_path)), queue=queue)
            found = await until_written(tmp_path, 2)
        return [int(process) for entries in found.values() for process, _, _ in entries]

    processes = run(main())
    assert len(set(processes)) == 2
    assert not [process for process in processes if is_alive(process)]


PROGRAM = """
import asyncio, sys
import sprocket
from sprocket.client.config import ConsumerConfig
from tests.client import listeners

async def main():
    async with sprocket.Standalone() as node:
        servers = node.nameserver_address
        config = ConsumerConfig(processes=2, drain_ms=200)
        async with (
            sprocket.Producer("senders", nameservers=servers) as producer,
            sprocket.PushConsumer("readers", nameservers=servers, start="first",
                                  config=config) as consumer,
        ):
            consumer.subscribe("orders", listener=listeners.take_long)
            (queue, *_) = await producer.queues("orders")
            for _ in range(2):
                await producer.send(sprocket.Message("orders", sys.argv[1].encode()), queue=queue)
            await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["interrupt", "kill"])
def test_no_process_outlives_its_program(tmp_path: Path, way: str) -> None:
    root = Path(__file__).resolve().parents[3]
    (tmp_path / "program.py").write_text(PROGRAM)
    bodies = tmp_path / "bodies"
    bodies.mkdir()
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(bodies)],
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        latest = time.monotonic() + LONGEST
        while len(found := written(bodies)) < 2:
            assert program.poll() is None
            assert time.monotonic() < latest
            time.sleep(0.02)
        if way == "interrupt":  # as a terminal does: the whole group of processes hears of it
            os.killpg(program.pid, 2)
        else:
            program.kill()
        program.wait(LONGEST)
    processes = [int(process) for entries in found.values() for process, _, _ in entries]
    latest = time.monotonic() + LONGEST
    while alive := [process for process in processes if is_alive(process)]:
        assert time.monotonic() < latest, alive
        time.sleep(0.02)


@pytest.mark.parametrize(
    "function",
    [lambda message: None, functools.partial(print, file=sys.stdout)],
    ids=["lambda", "partial"],
)
def test_what_no_process_can_import_is_refused_at_once(function: object) -> None:
    config = ConsumerConfig(processes=1)
    consumer = sprocket.PushConsumer("readers", nameservers="127.0.0.1:1", config=config)
    with pytest.raises(UsageError, match="a function that its module has by name"):
        consumer.subscribe("orders", listener=function)  # type: ignore[arg-type]
    check_portable(listeners.do_as_tagged)


def test_a_process_that_dies_while_it_has_nothing_to_do_costs_no_message() -> None:
    processes = ListenerProcesses()
    first = processes.call(listeners.process_of, None)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # all its threads have ended
    assert processes.call(os.path.basename, "/tmp/there") == "there"
    processes.end()


def test_calls_after_the_end_fail() -> None:
    processes = ListenerProcesses()
    assert processes.call(os.path.basename, "/tmp/there") == "there"
    processes.end()
    with pytest.raises(ListenerFailed, match="closed"):
        processes.call(os.path.basename, "/tmp/there")
