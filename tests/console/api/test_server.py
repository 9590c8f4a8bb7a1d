"""The web server listens where it may, and ends in order."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sprocket.base.errors import UsageError
from sprocket.console.api.server import WebServer
from sprocket.console.api.web_address import WebAddress
from tests.certificates import Authority
from tests.support import run

pytestmark = pytest.mark.process


async def hello(request: Any) -> PlainTextResponse:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", hello)])


async def got(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


def test_it_serves_at_a_free_port_and_stops() -> None:
    async def main() -> None:
        async with WebServer(APP, WebAddress()) as server:
            port = int(server.url.rpartition(":")[2])
            answer = await got(port)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"hello")
            assert b"uvicorn" not in answer.lower()
        with pytest.raises(ConnectionRefusedError):
            await got(port)

    run(main())


def test_a_port_that_is_taken_is_told() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = WebServer(APP, WebAddress(port=taken.getsockname()[1]))
            with pytest.raises(UsageError, match="--port"):
                await server.__aenter__()

    run(main())


def test_tls_is_served_with_a_certificate_that_can_be_used(
    tmp_path: Path, authority: Authority
) -> None:
    async def main() -> None:
        made = authority.issue("localhost")
        where = WebAddress(certificate=Path(made.certificate), key=Path(made.key))
        async with WebServer(APP, where) as server:
            assert server.url.startswith("https://")
        nonsense = tmp_path / "nonsense"
        nonsense.write_text("x")
        server = WebServer(APP, WebAddress(certificate=nonsense, key=nonsense))
        with pytest.raises(UsageError, match="cannot be used"):
            await server.__aenter__()

    run(main())
