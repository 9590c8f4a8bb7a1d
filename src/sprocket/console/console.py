"""The web console: pages over what an operator does, and the HTTP API and MCP beside them.

A process has one console at a time, since NiceGUI has one application for a process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from fastapi import FastAPI
from nicegui import ui

from sprocket.admin.caller import Caller
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.console.api.api import Api
from sprocket.console.api.server import WebServer
from sprocket.console.api.web_address import WebAddress
from sprocket.console.history.sampler import HistorySampler
from sprocket.console.pages import PAGES
from sprocket.console.web.desk import ConsoleDesk
from sprocket.console.web.entrance import ConsoleEntrance
from sprocket.console.web.entry_guard import EntryGuard
from sprocket.console.web.frame import add_pages
from sprocket.console.web.login_routes import LoginRoutes
from sprocket.console.web.report_routes import ReportRoutes
from sprocket.console.web.sessions import Sessions
from sprocket.console.web.settings import ConsoleSettings
from sprocket.remoting.pool import Pool
from sprocket.runtime.clock import SystemClock

#: An icon of our own, so that none is fetched.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="11" '
    'fill="#1f6aa5"/><path d="M7 9h10M7 13h10M7 17h6" stroke="#fff" stroke-width="2"/></svg>'
)


class Console(OpenedInOrder):
    """The pages as an application. Use it with `async with`, and serve `app` inside.

    Args:
        api: served beside the pages; None for none.
        now_ms: the time, ms since 1970 UTC; None for the machine's.

    Attributes:
        desk: what the pages work with.
        app: the application, with what guards it.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        *,
        api: Api | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        time_ms = now_ms or SystemClock().now_ms
        self._api = api
        self._pool = Pool(signer=settings.signer, tls=settings.tls)
        caller = Caller(self._pool, settings.nameservers, timeout_ms=settings.timeout_ms)
        sessions = Sessions(now_ms=time_ms)
        entrance = ConsoleEntrance(settings, now_ms=time_ms)
        self.desk = ConsoleDesk(
            settings,
            HistorySampler(caller, now_ms=time_ms),
            entrance=entrance,
            sessions=sessions,
            now_ms=time_ms,
        )
        login = LoginRoutes(sessions, entrance, is_secure=settings.is_secure)
        pages = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        of_api = () if api is None else api.routes
        pages.router.routes.extend([*login.routes, *ReportRoutes(self.desk).routes, *of_api])
        add_pages(PAGES, self.desk)
        ui.run_with(
            pages, title="Sprocket", favicon=_ICON, dark=None, tailwind=False,
            show_welcome_message=False, reconnect_timeout=10.0,
        )  # fmt: skip
        self.app: Any = EntryGuard(pages, settings.host_names)

    async def _open(self, opened: AsyncExitStack) -> None:
        """Begins to sample."""
        opened.push_async_callback(self._pool.close)
        await opened.enter_async_context(self.desk.runner)
        if self._api is not None:
            await opened.enter_async_context(self._api)
        task = asyncio.ensure_future(self.desk.sampler.run())
        opened.push_async_callback(_ended, task)


class ConsoleServer(OpenedInOrder):
    """A console that listens. Use it with `async with`, and `serve` inside."""

    def __init__(self, console: Console, where: WebAddress) -> None:
        self._console = console
        self._server = WebServer(console.app, where, has_websockets=True)

    @property
    def url(self) -> str:
        """The address of the overview, after the start."""
        return f"{self._server.url}/"

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts to serve.

        Raises:
            UsageError: the address is in use or not one of this machine.
        """
        await opened.enter_async_context(self._console)
        await opened.enter_async_context(self._server)

    async def serve(self) -> None:
        """Serves until it fails."""
        await self._server.serve()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
