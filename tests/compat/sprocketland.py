"""Sprocket's servers as processes of their own, for Java clients and servers to meet.

They are started as a user starts them, through the command line. Like their Java counterparts in
:mod:`tests.compat.javaland` they block, keep their ports from one start to the next, and are
killed at the end of a ``with`` block; ``stop()`` ends them in order.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.compat.javaland import HOST, free_broker_port, free_port

Settings = Mapping[str, object]

#: File sizes as `javaland.BROKER_DEFAULTS` has them, so that each opens what the other wrote.
STORE_SIZES: Settings = {
    "store.log_file_bytes": 16 * 1024 * 1024,
    "store.queue_file_bytes": 3000 * 20,
    "store.index_slots": 10_000,
    "store.index_entries": 40_000,
}


class SprocketProcess:
    """One process, with its complaints in ``log``."""

    def __init__(self, name: str, work: Path) -> None:
        """Prepare the folder ``work/name``; nothing runs before :meth:`start`."""
        self.name = name
        self.work = work / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """Words of the command line behind ``sprocket``."""
        raise NotImplementedError

    def start(self) -> Self:
        """Start it and wait for the line that says that it is ready."""
        words = [sys.executable, "-m", "sprocket", *self.command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        if b"is ready" not in self._process.stdout.readline():
            self.kill()
            raise RuntimeError(f"{self.name} did not start:\n{self.log.read_text()[-4000:]}")
        return self

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "not started"
        return self._process.pid

    def stop(self, within: float = 240.0) -> None:
        """End it in order; it must not complain about that."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            code = self._process.wait(within)
            self._forget()
            if code != 0:
                raise RuntimeError(f"{self.name} ended with {code}:\n{self.log.read_text()}")

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *error: object) -> None:
        """Kill."""
        self.kill()

    def _forget(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdout.close()
        self._process = None


class SprocketNode(SprocketProcess):
    """A name server and a broker in one process."""

    def __init__(
        self,
        work: Path,
        *,
        store: Path | None = None,
        settings: Settings | None = None,
        grpc: bool = False,
        words: Sequence[str] = (),
    ) -> None:
        """Describe a node that keeps its files in ``store``; ``settings`` are ``part.name``s.

        ``words`` are more of the command line.
        """
        super().__init__("sprocket-node", work)
        self._words = words
        self.store = store or self.work / "store"
        self.settings = {**STORE_SIZES, **(settings or {})}
        self.name_server_port = free_port()
        self.port = free_broker_port()
        self.names = f"{HOST}:{self.name_server_port}"
        self.address = f"{HOST}:{self.port}"
        #: Where clients of gRPC connect, if they may.
        self.endpoint = f"{HOST}:{free_port()}" if grpc else None

    @property
    def command(self) -> list[str]:
        """Words of the command line behind ``sprocket``."""
        port = ["--grpc-port", self.endpoint.rpartition(":")[2]] if self.endpoint else []
        return [
            "standalone",
            *port,
            *self._words,
            *("--store", str(self.store)),
            *("--nameserver-port", str(self.name_server_port)),
            *("--broker-port", str(self.port)),
            *_set(self.settings),
        ]


class SprocketNameServer(SprocketProcess):
    """A name server alone."""

    def __init__(self, work: Path, *, settings: Settings | None = None) -> None:
        """Describe one; ``settings`` are ``part.name``s."""
        super().__init__("sprocket-name-server", work)
        self.settings = settings or {}
        self.port = free_port()
        self.address = f"{HOST}:{self.port}"

    @property
    def command(self) -> list[str]:
        """Words of the command line behind ``sprocket``."""
        return ["nameserver", "--port", str(self.port), *_set(self.settings)]


class SprocketBroker(SprocketProcess):
    """A broker alone, registered at ``names``."""

    def __init__(
        self,
        work: Path,
        *names: str,
        name: str = "broker-s",
        store: Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Describe one; ``settings`` are ``part.name``s."""
        super().__init__(name, work)
        self.names = names
        self.store = store or self.work / "store"
        self.settings = {**STORE_SIZES, **(settings or {})}
        self.port = free_broker_port()
        self.address = f"{HOST}:{self.port}"

    @property
    def command(self) -> list[str]:
        """Words of the command line behind ``sprocket``."""
        return [
            "broker",
            *("--nameserver", ";".join(self.names)),
            *("--store", str(self.store)),
            *("--name", self.name),
            *("--port", str(self.port)),
            *_set(self.settings),
        ]


class SprocketProxy(SprocketProcess):
    """A proxy of gRPC in front of the brokers of a name server."""

    def __init__(self, work: Path, names: str, *, settings: Settings | None = None) -> None:
        """Describe one; ``settings`` are ``part.name``s."""
        super().__init__("sprocket-proxy", work)
        self.names = names
        self.settings = settings or {}
        self.port = free_port()
        self.endpoint = f"{HOST}:{self.port}"

    @property
    def command(self) -> list[str]:
        """Words of the command line behind ``sprocket``."""
        where = ["--nameserver", self.names, "--port", str(self.port)]
        return ["proxy", *where, *_set(self.settings)]


def _set(settings: Settings) -> list[str]:
    pairs = (f"{key}={value}" for key, value in settings.items())
    return [word for pair in pairs for word in ("--set", pair)]
