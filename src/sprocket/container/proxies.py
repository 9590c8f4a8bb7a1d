"""Several processes of `sprocket proxy` at one port.

They all listen, and the system gives each connection to one of them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack

from sprocket.base.errors import UsageError
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.container.children import ChildSpec, Launcher
from sprocket.container.pages import ChildPages, ContainerMetrics
from sprocket.container.supervisor import Supervisor
from sprocket.metrics.config import MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import serving
from sprocket.proxy.config import ProxyConfig
from sprocket.remoting import address

#: How long the processes may take to end, s.
_STOP_SECONDS = 20.0


class Proxies(OpenedInOrder):
    """Several processes at one port. Use it with `async with`.

    Args:
        count: how many.
        config: for host and port; each process reads its settings by itself.
        arguments: of the command of each.
        settings: environment variables of each.
        metrics: whether and where metrics and health of all are served.
    """

    def __init__(
        self,
        count: int,
        config: ProxyConfig,
        *,
        launcher: Launcher,
        arguments: tuple[str, ...],
        settings: Mapping[str, str],
        metrics: MetricsConfig,
    ) -> None:
        self._count = count
        self._host, self._port = config.host, config.port
        self._arguments, self._settings = arguments, settings
        self._labels = metrics.labels
        self.supervisor = Supervisor(launcher, stop_seconds=_STOP_SECONDS)
        self._exporting = Exporting(metrics, ChildPages(self.supervisor))

    @property
    def pages(self) -> str | None:
        """`host:port` of metrics and health of all; None if none are served."""
        return self._exporting.address

    @property
    def address(self) -> str:
        """Where they listen."""
        return address.join(self._host or "0.0.0.0", self._port)

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts all; returns when all listen.

        Raises:
            UsageError: the port is in use, or this system cannot share one.
            ChildFailed: none of them could start.
        """
        await opened.enter_async_context(self._exporting)
        opened.callback(self._reserve().close)
        own = ContainerMetrics(self.supervisor, "proxies", lambda: self.address)
        self._exporting.add("proxies", own, serving)
        opened.push_async_callback(self.supervisor.stop)
        await self.supervisor.start(map(self._spec, range(self._count)))

    def _spec(self, number: int) -> ChildSpec:
        labels = ",".join([*((self._labels,) if self._labels else ()), f"process:{number}"])
        own = {"SPROCKET_PROXY_PORT": str(self._port), "SPROCKET_METRICS_LABELS": labels}
        return ChildSpec(f"proxy-{number}", self._arguments, {**self._settings, **own})

    def _reserve(self) -> socket.socket:
        """Binds the port without listening, so that it stays the same, and ours."""
        if not hasattr(socket, "SO_REUSEPORT"):
            raise UsageError("this system cannot share a port between processes")
        try:
            family = socket.getaddrinfo(self._host or None, self._port, flags=socket.AI_PASSIVE)
            reserved = socket.socket(family[0][0], socket.SOCK_STREAM)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reserved.bind(family[0][4])
        except OSError as error:
            raise UsageError(f"cannot listen at {self.address}: {error.strerror}") from error
        self._port = reserved.getsockname()[1]
        return reserved

    async def serve(self) -> None:
        """Keeps the processes running; never returns."""
        await asyncio.get_running_loop().create_future()
