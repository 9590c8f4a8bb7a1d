"""Serves or sends the metrics of the servers of a process, as the settings say."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from sprocket.base.config import check
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.metrics.config import LOG, OTLP, PROM, MetricsConfig
from sprocket.metrics.health import Probe, starting
from sprocket.metrics.model import Source
from sprocket.metrics.pages import Others, Pages
from sprocket.metrics.pushing import Push, push_always, to_collector, to_log
from sprocket.metrics.reading import MetricsReader

S = TypeVar("S", bound="Serving")


class Exporting(OpenedInOrder):
    """Use it with `async with`, around the servers: their health is told before they serve.

    Args:
        others: processes whose metrics and health stand on the same pages.

    Raises:
        ConfigError: a setting is invalid.
    """

    def __init__(self, config: MetricsConfig, others: Others | None = None) -> None:
        check(config)
        self._others = others
        self._config = config
        self._sources: list[Source] = []
        self._probes: dict[str, Probe] = {}
        self._reader = MetricsReader(self._sources, config)
        self._pages: Pages | None = None

    @property
    def address(self) -> str | None:
        """`host:port` of the pages; None if none are served."""
        return None if self._pages is None else self._pages.address

    def expect(self, name: str) -> None:
        """Tells of a server that starts."""
        self._probes[name] = starting

    def add(self, name: str, source: Source, probe: Probe) -> None:
        """Takes the metrics and the health of a server that has started."""
        self._sources.append(source)
        self._probes[name] = probe

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts to serve or send.

        Raises:
            UsageError: a library is missing, or the port is in use.
            ConfigError: no collector is set.
        """
        config = self._config
        if config.exporter == PROM or config.health:
            reader = self._reader if config.exporter == PROM else None
            pages = Pages(
                reader,
                self._probes,
                host=config.host,
                port=config.port,
                others=self._others,
            )
            opened.callback(self._forget_pages)
            self._pages = await opened.enter_async_context(pages)
        if config.exporter == OTLP:
            self._start(opened, to_collector(config), config.interval_ms)
        elif config.exporter == LOG:
            self._start(opened, to_log, config.log_interval_ms)

    def _start(self, opened: AsyncExitStack, push: Push, interval_ms: int) -> None:
        work = push_always(
            self._reader, push, interval_ms=interval_ms, in_delta=self._config.in_delta
        )
        opened.push_async_callback(_ended, asyncio.ensure_future(work))

    def _forget_pages(self) -> None:
        self._pages = None


class Serving(Protocol):
    """A server that runs inside `async with`; `serve` raises if its disk fails."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def serve(self) -> None: ...


class Observed(OpenedInOrder, Generic[S]):
    """A server with its metrics and health, which are there before it serves.

    Args:
        name: of the server, in the pages of health.

    Attributes:
        server: the server.
    """

    def __init__(
        self, server: S, config: MetricsConfig, name: str, source: Source, probe: Probe
    ) -> None:
        self.server = server
        self._name, self._source, self._probe = name, source, probe
        self._exporting = Exporting(config)

    @property
    def pages(self) -> str | None:
        """`host:port` of metrics and health; None if none are served."""
        return self._exporting.address

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts to tell the health, then the server.

        Raises:
            UsageError: a library is missing, or a port is in use.
        """
        await opened.enter_async_context(self._exporting)
        self._exporting.expect(self._name)
        await opened.enter_async_context(self.server)
        self._exporting.add(self._name, self._source, self._probe)

    async def serve(self) -> None:
        """As the server's."""
        await self.server.serve()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
