"""Two masters and a slave as processes of their own: a master is killed while messages wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.message.properties import DELAY, TIMER_DELIVER_MS
from sprocket.message.record import scan
from sprocket.protocol.bodies import ReplicaStateBody
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage
from sprocket.protocol.requests.replica import ReplicaState
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from tests.support import run

pytestmark = pytest.mark.process

#: The machine may be doing much else.
SECONDS_MAX = 90.0
MASTER, SLAVE, OTHER = "master", "slave", "other"


class Processes:
    """A name server, a master with its slave, and another master."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = list(_free_ports(4))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[('ns', MASTER, SLAVE, OTHER).index(name)]}"

    def start(self, name: str) -> None:
        port = self.address(name).rpartition(":")[2]
        command = [sys.executable, "-m", "sprocket"]
        if name == "ns":
            command += ["nameserver", "--port", port, "--set", "nameserver.acting_masters=true"]
        else:
            command += [
                "broker", "--name", "b" if name == OTHER else "a", "--port", port,
                "--nameserver", self.address("ns"), "--store", str(self._folder / name),
                "--set", "broker.acting_master=true", "--set", "broker.remote_escape=true",
                "--set", "store.log_file_bytes=1048576", "--set", "broker.registration_ms=1000",
            ]  # fmt: skip
        if name == SLAVE:
            command += ["--set", "broker.role=SLAVE", "--set", "broker.id=1"]
        log = (self._folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)


def _free_ports(count: int) -> Iterator[int]:
    """Ports of which the one above is free too."""
    for port in range(21_000 + os.getpid() % 9_000, 32_000, 7):
        with contextlib.ExitStack() as opened:
            try:
                for each in (port, port + 1):
                    opened.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
        yield port
        count -= 1
        if not count:
            return


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    try:
        yield made
    finally:
        made.close()


async def until(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    give_up = time.monotonic() + SECONDS_MAX
    while time.monotonic() < give_up:
        with contextlib.suppress(SprocketError):
            if await is_so():
                return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not in time: {what}; see *.log in the folder")


class Asking:
    """Plain requests to the processes."""

    def __init__(self, processes: Processes, pool: Pool) -> None:
        self._processes, self._pool = processes, pool

    async def create(self, name: str) -> bool:
        header = CreateTopic(
            topic="T", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG",
        )  # fmt: skip
        await self._pool.ask(self._processes.address(name), header, deadline=Deadline.after(5))
        return True

    async def send(self, body: bytes, **properties: str) -> None:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=0, properties=text, born_timestamp=1
        )
        address, deadline = self._processes.address(MASTER), Deadline.after(5)
        await self._pool.ask(address, header, body=body, deadline=deadline)

    async def is_copied(self) -> bool:
        ends = []
        for name in (MASTER, SLAVE):
            address, deadline = self._processes.address(name), Deadline.after(5)
            reply = await self._pool.ask(address, ReplicaState(), deadline=deadline)
            ends.append(ReplicaStateBody.decode(reply.body))
        return ends[0].in_sync_slave_nums == 1

    async def bodies(self, name: str) -> list[bytes]:
        header = PullMessage(
            consumer_group="g", topic="T", queue_id=0, queue_offset=0, max_msg_nums=32,
            sys_flag=SUBSCRIPTION, subscription="*",
        )  # fmt: skip
        address, deadline = self._processes.address(name), Deadline.after(5)
        reply = await self._pool.call(address, header, deadline=deadline)
        return sorted(each.body for each in scan(reply.body, "")) if reply.code == 0 else []


def test_what_falls_due_is_at_the_other_master_once(processes: Processes) -> None:
    async def main() -> None:
        for name in ("ns", OTHER, MASTER, SLAVE):
            processes.start(name)
        async with Pool() as pool:
            asking = Asking(processes, pool)
            for name in (MASTER, OTHER):
                await until(lambda name=name: asking.create(name), f"{name} runs")  # type: ignore[misc]
            await until(asking.is_copied, "the slave copies")
            due_ms = int(time.time() * 1000) + 6_000
            await asking.send(b"level", **{DELAY: "2"})
            await asking.send(b"time", **{TIMER_DELIVER_MS: str(due_ms)})
            await asyncio.sleep(1.5)  # until the slave has the messages, and what is known of them
            processes.kill(MASTER)

            async def is_there() -> bool:
                return await asking.bodies(OTHER) == [b"level", b"time"]

            await until(is_there, "both are delivered at the other master")
            processes.start(MASTER)

            async def is_back() -> bool:
                await asking.send(b"new", **{DELAY: "1"})
                return True

            async def has_come() -> bool:
                return bool(await asking.bodies(MASTER))

            await until(is_back, "the master accepts messages again")
            await until(has_come, "what is sent to the master now comes there")
            assert await asking.bodies(MASTER) == [b"new"]
            assert await asking.bodies(OTHER) == [b"level", b"time"]

    run(main())
