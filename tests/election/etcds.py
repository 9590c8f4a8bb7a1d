"""Real etcd servers on free ports, for tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

BINARY = shutil.which("etcd") or "/usr/bin/etcd"

needs_etcd = pytest.mark.skipif(
    not Path(BINARY).exists(), reason="needs etcd (Debian: apt install etcd-server)"
)

#: How long a server may take to serve, s: the machine may be doing much else.
START_SECONDS_MAX = 60.0


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Etcd:
    """A cluster of etcd servers, each a process of its own.

    Args:
        folder: where they keep their data.
        count: how many servers there are.
        options: further options of each.
        tls: of whoever asks servers with TLS whether they serve.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 1,
        options: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._scheme = "http" if tls is None else "https"
        ports = free_ports(2 * count)
        self.addresses = [f"127.0.0.1:{port}" for port in ports[:count]]
        peers = [f"http://127.0.0.1:{port}" for port in ports[count:]]
        names = [f"e{n}={peer}" for n, peer in enumerate(peers)]
        self._commands = []
        for n, address in enumerate(self.addresses):
            client = f"{self._scheme}://{address}"
            self._commands.append([
                BINARY, "--name", f"e{n}", "--data-dir", str(folder / f"e{n}"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peers[n], "--initial-advertise-peer-urls", peers[n],
                "--initial-cluster", ",".join(names), "--heartbeat-interval", "50",
                "--election-timeout", "500", *options,
            ])  # fmt: skip
        self._log = (folder / "etcd.log").open("ab")
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def place(self) -> str:
        """The setting that names it."""
        return f"{'etcd' if self._tls is None else 'https'}://{','.join(self.addresses)}"

    def start(self) -> None:
        """Starts those that do not run, and waits until all answer."""
        environment = {**os.environ, "ETCD_UNSUPPORTED_ARCH": os.environ.get("ETCD_ARCH", "arm64")}
        for n, command in enumerate(self._commands):
            if n not in self.processes:
                self.processes[n] = subprocess.Popen(
                    command, stdout=self._log, stderr=self._log, env=environment
                )
        give_up = time.monotonic() + START_SECONDS_MAX
        for address in self.addresses:
            while not self._is_healthy(address):
                assert time.monotonic() < give_up, f"etcd at {address} does not serve"
                time.sleep(0.05)

    def kill(self, n: int) -> None:
        """Kills one."""
        process = self.processes.pop(n)
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()

    def pause(self, n: int) -> None:
        """Stops one, as if its machine were frozen."""
        self.processes[n].send_signal(signal.SIGSTOP)

    def close(self) -> None:
        """Kills all."""
        for n in [*self.processes]:
            self.kill(n)
        self._log.close()

    def _is_healthy(self, address: str) -> bool:
        try:
            url = f"{self._scheme}://{address}/health"
            with urllib.request.urlopen(url, timeout=1, context=self._tls) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False
