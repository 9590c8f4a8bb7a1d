"""The pages `/metrics`, `/health/live` and `/health/ready`, by aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

from sprocket.base.errors import UsageError
from sprocket.base.exposition import CONTENT_TYPE, distribution, heading, line
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.metrics.health import Health, Probe, worst
from sprocket.metrics.merging import merged
from sprocket.metrics.model import Metric
from sprocket.metrics.reading import MetricsReader, Reading, labels_of
from sprocket.remoting import address as addresses

if TYPE_CHECKING:
    from aiohttp import web

#: Values that are written in one turn of the event loop.
_AT_ONCE = 512


class Others(Protocol):
    """Tells the metrics and the health of other processes."""

    async def metrics(self) -> list[str]:
        """The metrics of each, as Prometheus reads them."""
        ...

    async def states(self) -> Mapping[str, Health]:
        """The health of each, by its name."""
        ...


class Pages(OpenedInOrder):
    """Serves the pages. Use it with `async with`.

    Args:
        reader: the metrics; None for no page of them.
        probes: what tells the health of each server of this process, by its name.
        others: processes whose metrics and health stand on the same pages.
    """

    def __init__(
        self,
        reader: MetricsReader | None,
        probes: Mapping[str, Probe],
        *,
        host: str,
        port: int,
        others: Others | None = None,
    ) -> None:
        self._others = others
        self._reader = reader
        self._probes = probes
        self._host, self._port = host, port
        #: Two scrapes at once would hold the values twice.
        self._turn = asyncio.Semaphore(1)

    @property
    def address(self) -> str:
        """`host:port` at which it listens."""
        return addresses.join(self._host, self._port)

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts to listen.

        Raises:
            UsageError: aiohttp is missing, or the address is in use or not one of this machine.
        """
        web = _web()
        app = web.Application()
        app.router.add_get("/health/live", self._live)
        app.router.add_get("/health/ready", self._ready)
        if self._reader is not None:
            app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        opened.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, self._host or None, self._port).start()
        except OSError as error:
            raise UsageError(
                f"cannot serve metrics at {self.address}: {error.strerror}; metrics.port "
                "(metricsPromExporterPort) takes another port"
            ) from error
        self._port = runner.addresses[0][1]

    async def _metrics(self, request: web.Request) -> web.Response:
        assert self._reader is not None
        async with self._turn:
            text = await exposition(self._reader)
            if self._others is not None:
                text = merged([text, *await self._others.metrics()])
        response: web.Response = _web().Response(text=text, headers={"Content-Type": CONTENT_TYPE})
        return response

    async def _live(self, request: web.Request) -> web.Response:
        health = await self._states()
        return _page(health, is_good=worst(health).is_live)

    async def _ready(self, request: web.Request) -> web.Response:
        health = await self._states()
        return _page(health, is_good=worst(health).is_ready)

    async def _states(self) -> dict[str, Health]:
        others = {} if self._others is None else await self._others.states()
        return {**{name: probe() for name, probe in self._probes.items()}, **others}


async def exposition(reader: MetricsReader) -> str:
    """All metrics as the text that Prometheus reads, made in turns of the event loop."""
    by_metric: dict[Metric, list[Reading]] = {}
    async for reading in reader.readings():
        if reading.family.points or reading.family.histograms:
            by_metric.setdefault(reading.family.metric, []).append(reading)
    lines: list[str] = []
    for metric, readings in by_metric.items():
        meaning = f"{metric.meaning} Unit: {metric.unit}." if metric.unit else metric.meaning
        lines.append(heading(metric.name, metric.kind.value, meaning))
        for labels, family in readings:
            for number, (values, value) in enumerate(family.points.items(), 1):
                lines.append(line(metric.name, labels_of(metric, values, labels), value))
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            for number, (values, histogram) in enumerate(family.histograms.items(), 1):
                own = labels_of(metric, values, labels)
                lines.append(distribution(metric.name, own, histogram))
                if number % (_AT_ONCE // 16) == 0:
                    await asyncio.sleep(0)
    return "".join(lines)


def _page(states: Mapping[str, Health], *, is_good: bool) -> web.Response:
    servers = {name: {"state": each.state.value, "why": each.why} for name, each in states.items()}
    body = {"state": worst(states).state.value, "servers": servers}
    page: web.Response = _web().json_response(body, status=200 if is_good else 503)
    return page


def _web() -> Any:
    """aiohttp's server part.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from aiohttp import web
    except ImportError:
        raise UsageError(
            "metrics and health need aiohttp: pip install 'sprocketmq[metrics]'"
        ) from None
    return web
