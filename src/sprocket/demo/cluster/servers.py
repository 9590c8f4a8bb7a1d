"""The processes of the cluster: etcd, two name servers, and the brokers of one group.

Each server runs in a process group of its own, so that Ctrl-C reaches only this program, which
stops them in order. What they write goes into a file each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from sprocket.base.errors import UsageError
from sprocket.base.opened_in_order import OpenedInOrder

GROUP_NAME = "broker-a"
_HOST = "127.0.0.1"
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_AGAIN_SECONDS = 0.02


class ServerProcess:
    """One server, which may be started again after it has ended.

    Attributes:
        name: for people.
        port: at which it serves.
    """

    def __init__(self, name: str, command: Sequence[str], *, port: int, log: Path) -> None:
        self.name = name
        self.port = port
        self._command = list(command)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{_HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The number of the process that was started last, and of its process group; 0: none."""
        return 0 if self._process is None else self._process.pid

    async def start(self) -> None:
        """Returns when it listens.

        Raises:
            UsageError: it ended, or does not listen in time; the text has its last lines.
        """
        with self._log.open("ab") as log:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_SECONDS):
                while process.returncode is None:
                    if await _listens(self.port):
                        return
                    await asyncio.sleep(_AGAIN_SECONDS)
        last = self._log.read_text(errors="replace").splitlines()[-5:]
        raise UsageError("\n".join([f"{self.name} does not start; {self._log} ends with:", *last]))

    def signal(self, number: int) -> None:
        """Sends a signal to it and to its children. Does nothing if it has ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def ended(self) -> None:
        """Returns when it has ended; one that does not is killed."""
        if self._process is None:
            return
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self._process.wait()

    async def stop(self) -> None:
        """Stops it in order."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        await self.ended()


class ClusterServers(OpenedInOrder):
    """All servers. Use it with `async with`.

    Args:
        folder: of all data and logs.
        brokers: how many the group has.
        settings: further settings of each broker, as `part.name=value`.

    Attributes:
        nameservers, brokers: the servers.
    """

    def __init__(self, folder: Path, *, brokers: int, settings: Sequence[str]) -> None:
        etcd = shutil.which("etcd")
        if etcd is None:
            raise UsageError(
                "etcd is not installed, and decides which broker leads. Debian and Ubuntu: "
                "`apt-get install etcd-server`; Fedora: `dnf install etcd`; macOS: "
                "`brew install etcd`"
            )
        client, peer, *ports = _free_ports(4 + 2 * brokers)
        self._etcd = ServerProcess(
            "etcd", _etcd_command(etcd, folder / "etcd", client, peer),
            port=client, log=folder / "etcd.log",
        )  # fmt: skip
        self.nameservers = [
            ServerProcess(
                f"name server {number}",
                _sprocket("nameserver", "--port", ports[number],
                          "--store", folder / f"nameserver-{number}"),
                port=ports[number], log=folder / f"nameserver-{number}.log",
            )
            for number in range(2)
        ]  # fmt: skip
        self.brokers = [
            ServerProcess(
                f"broker {number + 1}",
                _sprocket(
                    "broker", "--name", GROUP_NAME, "--port", ports[2 + 2 * number],
                    "--nameserver", self.nameserver_list,
                    "--store", folder / f"broker-{number + 1}", "--verbose",
                    *_set(f"broker.replication_port={ports[3 + 2 * number]}",
                          f"broker.elector=etcd://{self._etcd.address}", *settings),
                ),
                port=ports[2 + 2 * number], log=folder / f"broker-{number + 1}.log",
            )
            for number in range(brokers)
        ]  # fmt: skip

    @property
    def nameserver_list(self) -> str:
        """The addresses of the name servers, as clients take them."""
        return ";".join(each.address for each in self.nameservers)

    async def _open(self, opened: contextlib.AsyncExitStack) -> None:
        """Starts everything.

        Raises:
            UsageError: something does not start.
        """
        for each in (self._etcd, *self.nameservers, *self.brokers):
            opened.push_async_callback(each.stop)
            await each.start()


def _sprocket(*words: object) -> list[str]:
    return [sys.executable, "-m", "sprocket", *map(str, words)]


def _set(*settings: str) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


def _etcd_command(program: str, folder: Path, client: int, peer: int) -> list[str]:
    clients, peers = f"http://{_HOST}:{client}", f"http://{_HOST}:{peer}"
    return [
        program, "--name", "one", "--data-dir", str(folder),
        "--listen-client-urls", clients, "--advertise-client-urls", clients,
        "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
        "--initial-cluster", f"one={peers}",
    ]  # fmt: skip


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((_HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(_HOST, port)
    except OSError:
        return False
    writer.close()
    return True
