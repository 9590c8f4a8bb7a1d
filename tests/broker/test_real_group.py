"""Three brokers as processes of their own, with etcd as their elector: the master is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from tests.election.etcds import Etcd, needs_etcd

pytest.importorskip("aiohttp", reason="needs the extra `etcd` (aiohttp)")
pytestmark = pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="a cluster of processes: SPROCKET_LONG=1"
)

#: The machine may be doing much else.
SECONDS_MAX = 60.0


class Processes:
    """The brokers of one group, by their numbers from 0 on."""

    def __init__(self, folder: Path, place: str) -> None:
        self._folder, self._place = folder, place
        self.ports: list[int] = []
        # The port for slaves is the one above; neither may be taken by a connection of others.
        for port in range(21_000 + os.getpid() % 9_000, 32_000, 7):
            if len(self.ports) < 3 and _are_free(port, port + 1):
                self.ports.append(port)
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self._ending: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        self._wait_for(number)
        command = [
            sys.executable, "-X", "faulthandler", "-m", "sprocket", "broker", "--name", "group",
            "--port", str(self.ports[number]), "--store", str(self._folder / f"b{number}"),
            "--set", f"broker.elector={self._place}", "--set", "broker.role=SYNC_MASTER",
            "--set", "store.log_file_bytes=1048576", "--set", "broker.lease_ms=3000",
        ]  # fmt: skip
        log = (self._folder / f"b{number}.log").open("ab")
        self.running[number] = subprocess.Popen(command, stdout=log, stderr=log)

    def end(self, number: int, how: signal.Signals) -> None:
        process = self._ending[number] = self.running.pop(number)
        process.send_signal(how)

    def _wait_for(self, number: int) -> None:
        """Returns when the process before has ended, which holds the folder and the port.

        On a busy machine the next one may be quicker. One that does not end writes its stacks.
        """
        process = self._ending.pop(number, None)
        if process is not None:
            try:
                process.wait(SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)
                raise

    def close(self) -> None:
        self.running |= self._ending
        for process in self.running.values():
            process.kill()
            process.wait()


def _are_free(*ports: int) -> bool:
    with contextlib.ExitStack() as opened:
        try:
            for port in ports:
                opened.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    etcd = Etcd(tmp_path)
    etcd.start()
    made = Processes(tmp_path, etcd.place)
    try:
        yield made
    finally:
        made.close()
        etcd.close()


class Sender:
    """Sends to whichever broker accepts it."""

    def __init__(self, addresses: list[str]) -> None:
        self.pool = Pool()
        self._addresses = addresses

    async def accepted(self, header: CreateTopic | SendMessageV2, body: bytes = b"") -> int:
        """The number of the broker that accepted it."""
        give_up = time.monotonic() + SECONDS_MAX
        while time.monotonic() < give_up:
            for number, address in enumerate(self._addresses):
                with contextlib.suppress(SprocketError):
                    await self.pool.ask(address, header, body=body, deadline=Deadline.after(1))
                    return number
            await asyncio.sleep(0.005)
        raise AssertionError("no broker of the group accepts anything; see b*.log in the folder")

    async def in_sync(self, number: int, count: int) -> None:
        """Returns when so many members are in sync."""
        give_up = time.monotonic() + SECONDS_MAX
        while time.monotonic() < give_up:
            address = self._addresses[number]
            reply = await self.pool.ask(address, BrokerState(), deadline=Deadline.after(5))
            members = KvTable.decode(reply.body).table.get("inSyncSet", "").split(",")
            if len(members) == count:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"fewer than {count} members are in sync")


TOPIC = CreateTopic(
    topic="T", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
    topic_filter_type="SINGLE_TAG",
)  # fmt: skip
SEND = SendMessageV2(producer_group="p", topic="T", queue_id=0, properties="", born_timestamp=1)


@needs_etcd
@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_master_accepts_sends_after_the_first_has_ended(
    processes: Processes, how: signal.Signals
) -> None:
    async def main() -> None:
        for number in range(3):
            processes.start(number)
        sender = Sender([f"127.0.0.1:{port}" for port in processes.ports])
        async with sender.pool:
            await sender.accepted(TOPIC)
            first = await sender.accepted(SEND, b"1")
            await sender.in_sync(first, 3)
            began = time.monotonic()
            processes.end(first, how)
            second = await sender.accepted(SEND, b"2")
            while second == first:  # it accepts until it has read the signal
                second = await sender.accepted(SEND, b"2")
            seconds = time.monotonic() - began
            print(f"{how.name}: the next send was accepted after {seconds:.3f} s")  # noqa: T201
            processes.start(first)
            await sender.in_sync(second, 3)

    asyncio.run(main())
