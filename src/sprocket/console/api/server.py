"""Serves a web application by uvicorn, on this loop and without its signal handlers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import uvicorn

from sprocket.base.errors import UsageError
from sprocket.console.api.web_address import WebAddress
from sprocket.remoting import address as addresses

#: Requests at the same time, and the bytes of a request's headers.
_AT_ONCE_MAX, _HEADER_BYTES_MAX = 256, 32_768
_DRAIN_SECONDS = 5


class _QuietServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs it.

    Attributes:
        begun: set once it serves.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.begun = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts as uvicorn's does, and says so."""
        await super().startup(sockets)
        self.begun.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves an application. Use it with `async with`, and `serve` inside.

    Args:
        has_websockets: whether the application serves WebSockets too.
    """

    def __init__(self, app: Any, where: WebAddress, *, has_websockets: bool = False) -> None:
        self._has_websockets = has_websockets
        self._app = app
        self._where = where
        self._socket: socket.socket | None = None
        self._server: _QuietServer | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of its root, after the start."""
        assert self._socket is not None
        scheme = "http" if self._where.certificate is None else "https"
        return f"{scheme}://{addresses.join(self._where.host, self._socket.getsockname()[1])}"

    async def __aenter__(self) -> Self:
        """Starts to serve.

        Raises:
            UsageError: the address is in use or not one of this machine, or the certificate cannot
                be used.
        """
        where = self._where
        try:
            family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
            self._socket = socket.create_server((where.host, where.port), family=family)
        except OSError as error:
            raise UsageError(
                f"cannot listen at {addresses.join(where.host, where.port)}: {error.strerror}; "
                "--port takes another port"
            ) from error
        config = uvicorn.Config(
            self._app, log_config=None, access_log=False, server_header=False, lifespan="on",
            limit_concurrency=_AT_ONCE_MAX, timeout_graceful_shutdown=_DRAIN_SECONDS,
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX, proxy_headers=False,
            ws="websockets-sansio" if self._has_websockets else "none",
            ssl_certfile=where.certificate, ssl_keyfile=where.key,
        )  # fmt: skip
        try:
            config.load()
        except OSError as error:  # also ssl.SSLError
            self._socket.close()
            raise UsageError(f"the certificate or its key cannot be used: {error}") from error
        self._server = _QuietServer(config)
        self._task = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        begun = asyncio.ensure_future(self._server.begun.wait())
        await asyncio.wait({begun, self._task}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if self._task.done():
            self._socket.close()
            self._task.result()
            raise UsageError("the web server ended before it began")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets requests in progress end, and closes."""
        assert self._server is not None
        assert self._task is not None
        self._server.should_exit = True
        await self._task

    async def serve(self) -> None:
        """Serves until it fails."""
        assert self._task is not None
        await asyncio.shield(self._task)
