"""`sprocket proxy`: serves clients of RocketMQ's gRPC service, in one process or in several.

Several processes listen at one port, and the system gives each connection to one of them. The first
process only watches over the others: it starts again those that end, and ends all with itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from sprocket.base.errors import SprocketError, UsageError
from sprocket.cli import loading
from sprocket.cli.options import ConfigFile, Host, Set
from sprocket.cli.serve import Port, Verbose, serve_until_signal

if TYPE_CHECKING:
    from sprocket.proxy.config import ProxyConfig
    from sprocket.proxy.proxy import Proxy

EXAMPLES = (
    "sprocket proxy --nameserver 127.0.0.1:9876",
    "sprocket proxy --nameserver 10.0.0.1:9876;10.0.0.2:9876 --host 0.0.0.0 --processes 4",
    "sprocket proxy --config rmq-proxy.json --port 8081",
)

#: Between two looks whether the first process still lives, s.
_PARENT_SECONDS = 1.0
#: The pause before a process that ended is started again, and how long one may take to end, s.
_AGAIN_SECONDS = 1.0
_STOP_SECONDS = 20.0
_PROCESSES_MAX = 64


def proxy(
    nameservers: Annotated[
        str | None,
        typer.Option(
            "--nameserver",
            "-n",
            metavar="HOST:PORT",
            envvar=["SPROCKET_NAMESERVERS", "NAMESRV_ADDR"],
            help="Name servers that know the brokers, separated by `;`.",
        ),
    ] = None,
    port: Port = None,
    host: Host = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=_PROCESSES_MAX,
            help="Processes that share the port.",
        ),
    ] = 1,
    config: ConfigFile = None,
    given: Set = None,
    verbose: Verbose = False,
    shared: Annotated[bool, typer.Option("--shared", hidden=True)] = False,
) -> None:
    """Runs a proxy between clients of RocketMQ's gRPC service and brokers."""
    from sprocket.proxy.config import ProxyConfig
    from sprocket.remoting.tls.settings import TlsConfig

    loaded = loading.of_servers(
        (ProxyConfig, TlsConfig),
        file=config,
        given=given,
        overrides={"proxy.nameservers": nameservers, "proxy.port": port, "proxy.host": host},
    )
    settings = loaded.of(ProxyConfig)
    if not settings.nameservers:
        raise UsageError("a proxy needs name servers: --nameserver HOST:PORT")
    if processes > 1 and not shared:
        serve_until_signal(
            Processes(processes, settings),
            lambda node: f"sprocket proxy is ready: {node.address}, {processes} processes",
            verbose=verbose,
        )
        return
    made = _proxy(settings, loaded.of(TlsConfig).whole(), is_shared=shared)
    node: Any = _Child(made) if shared else made
    serve_until_signal(
        node, lambda node: f"sprocket proxy is ready: {node.address}", verbose=verbose
    )


def _proxy(config: ProxyConfig, tls: Any, *, is_shared: bool) -> Proxy:
    from sprocket.proxy.proxy import Proxy
    from sprocket.runtime.clock import SystemClock
    from sprocket.runtime.entropy import SystemEntropy

    return Proxy(config, clock=SystemClock(), entropy=SystemEntropy(), tls=tls, is_shared=is_shared)


class _Child:
    """One of several processes: it ends when the first one is gone."""

    def __init__(self, served: Proxy) -> None:
        self._served = served
        self._parent = os.getppid()

    @property
    def address(self) -> str:
        """Where it listens."""
        return self._served.address

    async def __aenter__(self) -> Self:
        await self._served.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._served.__aexit__(kind, error, trace)

    async def serve(self) -> None:
        """Returns when the first process is gone."""
        while True:
            await asyncio.sleep(_PARENT_SECONDS)
            if os.getppid() != self._parent:
                return


class Processes:
    """Several processes at one port.

    Args:
        count: how many.
        config: for host and port; each process reads its settings by itself.
    """

    def __init__(self, count: int, config: ProxyConfig) -> None:
        self._count = count
        self._host, self._port = config.host, config.port
        self._children: list[asyncio.subprocess.Process] = []
        self._is_stopping = False

    @property
    def address(self) -> str:
        """Where they listen."""
        from sprocket.remoting import address

        return address.join(self._host or "0.0.0.0", self._port)

    async def __aenter__(self) -> Self:
        """Starts all; returns when all listen.

        Raises:
            UsageError: the port is in use, or this system cannot share one.
        """
        self._reserve()
        try:
            self._children = list(
                await asyncio.gather(*(self._start() for _ in range(self._count)))
            )
        except BaseException:  # whatever it was: none of them stays
            await self._stop()
            raise
        return self

    def _reserve(self) -> None:
        """Binds the port without listening, so that it stays the same, and ours."""
        if not hasattr(socket, "SO_REUSEPORT"):
            raise UsageError("this system cannot share a port between processes")
        try:
            family = socket.getaddrinfo(self._host or None, self._port, flags=socket.AI_PASSIVE)
            self._socket = socket.socket(family[0][0], socket.SOCK_STREAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._socket.bind(family[0][4])
        except OSError as error:
            raise UsageError(f"cannot listen at {self.address}: {error.strerror}") from error
        self._port = self._socket.getsockname()[1]

    async def _start(self) -> asyncio.subprocess.Process:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sprocket", *_own_arguments(sys.argv[1:]), "--shared",
            "--port", str(self._port),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert child.stdout is not None
        if not await child.stdout.readline():  # it says when it is ready
            raise SprocketError(f"a process of the proxy ended with code {await child.wait()}")
        return child

    async def serve(self) -> None:
        """Starts processes again that end; never returns."""
        await asyncio.gather(*(self._watch(at) for at in range(self._count)))

    async def _watch(self, at: int) -> None:
        while True:
            code = await self._children[at].wait()
            typer.echo(f"sprocket: a process of the proxy ended with code {code}", err=True)
            while True:
                await asyncio.sleep(_AGAIN_SECONDS)
                try:
                    self._children[at] = await self._start()
                    break
                except SprocketError as error:
                    typer.echo(f"sprocket: {error}", err=True)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends all processes."""
        await self._stop()

    async def _stop(self) -> None:
        running = [child for child in self._children if child.returncode is None]
        for child in running:
            child.terminate()
        ends = [asyncio.ensure_future(child.wait()) for child in running]
        if ends:
            await asyncio.wait(ends, timeout=_STOP_SECONDS)
        for child in running:
            if child.returncode is None:
                child.kill()
        self._socket.close()


def _own_arguments(arguments: Sequence[str]) -> list[str]:
    """The command's own arguments, without the number of processes and the port."""
    kept: list[str] = []
    skips = False
    for each in arguments:
        if skips:
            skips = False
        elif each in ("--processes", "--port"):
            skips = True
        elif not each.startswith(("--processes=", "--port=")):
            kept.append(each)
    return kept
