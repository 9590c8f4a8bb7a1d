"""The API as a part of a web application: its routes, and what runs while they are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.console.api.callers import ANYBODY, ApiCaller, KnownCallers
from sprocket.console.api.guarding import BODY_BYTES_MAX, CALLER, ApiGuard
from sprocket.console.api.http_routes import PUBLIC, http_app, no_route
from sprocket.console.api.mcp_tools import mcp_server
from sprocket.console.api.running import ApiSettings, OperationRunner
from sprocket.console.operations.table import OPERATIONS

#: The paths at which the HTTP routes and MCP are.
HTTP_PATH, MCP_PATH = "/api", "/mcp"


class Api(OpenedInOrder):
    """HTTP routes and MCP over the same operations.

    Its routes go into any ASGI application, before routes that would take their paths. They are
    served inside `async with`.

    Args:
        settings: what it works with.
        callers: who may ask.
        now_ms: the time, ms since 1970 UTC; None for the machine's.
    """

    def __init__(
        self,
        settings: ApiSettings,
        callers: KnownCallers,
        *,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._runner = OperationRunner(settings, now_ms=now_ms)
        server = mcp_server(self._runner, OPERATIONS, _sender)
        self._sessions = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=BODY_BYTES_MAX
        )
        time_ms = self._runner.now_ms
        routes = http_app(self._runner, OPERATIONS, base=HTTP_PATH)
        self._http = ApiGuard(routes, callers, time_ms, is_public=_is_public)
        self._mcp = ApiGuard(self._sessions.handle_request, callers, time_ms)

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes for an application."""
        return [
            Route(HTTP_PATH, _to_the_page, methods=["GET"]),
            Mount(HTTP_PATH, app=self._http),
            # Nothing is ever sent unasked, so there is no stream to open with GET.
            Route(MCP_PATH, _Endpoint(self._mcp), methods=["POST"]),
        ]

    async def _open(self, opened: AsyncExitStack) -> None:
        """Begins to serve."""
        await opened.enter_async_context(self._runner)
        await opened.enter_async_context(_in_task(self._sessions))


def api_app(api: Api) -> Starlette:
    """An application with nothing but the API, which it opens and closes itself."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        async with api:
            yield

    return Starlette(routes=api.routes, lifespan=life, exception_handlers={HTTPException: no_route})


class _Endpoint:
    """An ASGI application as the endpoint of a route."""

    def __init__(self, app: ApiGuard) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@asynccontextmanager
async def _in_task(sessions: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    """Runs MCP's sessions in a task of its own: they must end in the task in which they began."""
    begun, ending = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        async with sessions.run():
            begun.set()
            await ending.wait()

    task = asyncio.ensure_future(main())
    started = asyncio.ensure_future(begun.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        started.cancel()
        task.result()
    try:
        yield
    finally:
        ending.set()
        await task


def _is_public(scope: Scope) -> bool:
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return scope["method"] in ("GET", "HEAD") and path in PUBLIC


def _sender(request: Any) -> ApiCaller:
    """Who sends a request of MCP, as the guard found."""
    found = None if request is None else request.scope.get(CALLER)
    return found if isinstance(found, ApiCaller) else ANYBODY


async def _to_the_page(request: Any) -> RedirectResponse:
    return RedirectResponse(f"{HTTP_PATH}/", status_code=307)
