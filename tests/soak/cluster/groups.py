"""The processes of a soak: three brokers with three servers of etcd, or a broker of Java's and one
of ours under RocketMQ's controller."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from sprocket.demo.cluster.servers import GROUP_NAME, ServerProcess
from tests.compat.javaland import JavaProcess, free_broker_port
from tests.compat.sprocketland import SprocketProcess
from tests.compat.test_java_mixed_group import MixedGroup
from tests.election.etcds import free_ports

_HOST = "127.0.0.1"
#: A server that was told to end and has not after this long shows its stacks and is killed, s.
_END_SECONDS = 20.0


class Victim(Protocol):
    """A server that can be broken."""

    name: str

    async def start(self) -> None:
        """Returns when it serves."""
        ...

    async def end(self) -> bool:
        """Stops it in order; False if it had to be killed."""
        ...

    async def kill(self) -> None:
        """Kills it."""
        ...

    def signal(self, number: int) -> None:
        """Sends a signal to its process."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether a process of it is left."""
        ...


class OwnServer:
    """A server of ours, or of etcd."""

    def __init__(self, name: str, command: Sequence[object], *, port: int, log: Path) -> None:
        self.name = name
        self.port = port
        self._process = ServerProcess(name, [str(word) for word in command], port=port, log=log)
        self._groups: list[int] = []

    async def start(self) -> None:
        """Returns when it serves."""
        await self._process.start()
        self._groups.append(self._process.pid)

    def signal(self, number: int) -> None:
        """Sends a signal to it and to its children."""
        self._process.signal(number)

    async def end(self) -> bool:
        """Stops it in order; False if it had to be killed."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        ending = asyncio.ensure_future(self._process.ended())
        done, _ = await asyncio.wait([ending], timeout=_END_SECONDS)
        if not done:  # Python then writes the stacks of all threads into its log
            self.signal(signal.SIGABRT)
            await ending
        return bool(done)

    async def kill(self) -> None:
        """Kills it."""
        self.signal(signal.SIGKILL)
        await self._process.ended()

    @property
    def is_alive(self) -> bool:
        """Whether a process of it, or a child of one, is left."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, 0)
                return True
        return False


class CompatServer:
    """A server as the tests against Java start it."""

    def __init__(self, name: str, server: JavaProcess | SprocketProcess) -> None:
        self.name = name
        self._server = server

    async def start(self) -> None:
        """Returns when it serves."""
        await asyncio.to_thread(self._server.start)

    async def end(self) -> bool:
        """Stops it in order."""
        await asyncio.to_thread(self._server.stop)
        return True

    async def kill(self) -> None:
        """Kills it."""
        await asyncio.to_thread(self._server.kill)

    def signal(self, number: int) -> None:
        """Sends a signal to its process."""
        os.kill(self._server.pid, number)

    @property
    def is_alive(self) -> bool:
        """Whether its process is left."""
        return self._server.is_running


class SoakGroup(Protocol):
    """The servers of one soak.

    Attributes:
        brokers: the group.
        keys: those that decide who leads.
        nameservers: their addresses.
        stores: the folders of the brokers.
    """

    brokers: list[Victim]
    keys: list[Victim]
    nameservers: str
    stores: list[Path]

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Inside, all servers run, as far as nobody breaks them."""
        ...


class EtcdGroup:
    """Three brokers of ours, two name servers and three servers of etcd."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("etcd") or "/usr/bin/etcd"
        ports = free_ports(8)
        peers = [f"http://{_HOST}:{port}" for port in ports[3:6]]
        named = ",".join(f"e{number}={peer}" for number, peer in enumerate(peers))
        self.keys: list[Victim] = [
            OwnServer(
                f"etcd {number}",
                [
                    program, "--name", f"e{number}", "--data-dir", folder / f"etcd-{number}",
                    "--listen-client-urls", f"http://{_HOST}:{ports[number]}",
                    "--advertise-client-urls", f"http://{_HOST}:{ports[number]}",
                    "--listen-peer-urls", peers[number],
                    "--initial-advertise-peer-urls", peers[number],
                    "--initial-cluster", named,
                ],
                port=ports[number], log=folder / f"etcd-{number}.log",
            )
            for number in range(3)
        ]  # fmt: skip
        self._names: list[Victim] = [
            OwnServer(
                f"name server {number}",
                [*_SPROCKET, "nameserver", "--port", port, "--store", folder / f"names-{number}"],
                port=port, log=folder / f"names-{number}.log",
            )
            for number, port in enumerate(ports[6:])
        ]  # fmt: skip
        self.nameservers = ";".join(f"{_HOST}:{port}" for port in ports[6:])
        self.stores = [folder / f"broker-{number}" for number in range(3)]
        elector = "etcd://" + ",".join(f"{_HOST}:{port}" for port in ports[:3])
        self.brokers: list[Victim] = [
            self._broker(number, store, elector) for number, store in enumerate(self.stores)
        ]

    def _broker(self, number: int, store: Path, elector: str) -> Victim:
        port, (copies,) = free_broker_port(), free_ports(1)
        settings = [
            f"broker.elector={elector}", "broker.role=SYNC_MASTER", "broker.lease_ms=3000",
            "broker.copies=2", "broker.copies_min=2", f"broker.replication_port={copies}",
            "store.log_file_bytes=16777216",
        ]  # fmt: skip
        return OwnServer(
            f"broker {number}",
            [
                *_SPROCKET, "broker", "--name", GROUP_NAME, "--port", port, "--verbose",
                "--nameserver", self.nameservers, "--store", store,
                *(word for each in settings for word in ("--set", each)),
            ],
            port=port, log=store.with_suffix(".log"),
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside, all servers run, as far as nobody breaks them."""
        async with contextlib.AsyncExitStack() as started:
            for each in (*self.keys, *self._names, *self.brokers):
                started.push_async_callback(each.end)
            await asyncio.gather(*(each.start() for each in self.keys))
            for each in (*self._names, *self.brokers):
                await each.start()
            yield


class ControllerGroup:
    """A broker of Java's and one of ours under RocketMQ's controller."""

    def __init__(self, folder: Path) -> None:
        self._made = made = MixedGroup(folder)
        self.brokers: list[Victim] = [
            CompatServer("broker of Java's", made.java),
            CompatServer("broker of ours", made.ours),
        ]
        self.keys: list[Victim] = [CompatServer("controller", made.controller)]
        self.nameservers = made.names.address
        self.stores = [made.java.store, made.ours.store]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside, all servers run, as far as nobody breaks them."""
        names = CompatServer("name server", self._made.names)
        async with contextlib.AsyncExitStack() as started:
            for each in (names, *self.keys, *self.brokers):
                await each.start()
                started.push_async_callback(each.end)
            await asyncio.to_thread(self._made.both_in_sync, self._made.java.address)
            yield


_SPROCKET = [sys.executable, "-X", "faulthandler", "-m", "sprocket"]
