"""A server and a client with TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.tls.settings import ClientTls, TlsConfig
from tests.certificates import Authority, Issued
from tests.remoting.parts import Answers, Echo, soon


def serving_with(issued: Issued, **more: Any) -> TlsConfig:
    return TlsConfig(certificate=issued.certificate, key=issued.key, **more)


def trusting(authority: Authority, **more: Any) -> ClientTls:
    return ClientTls(**{"authorities": authority.path, **more})


def showing(authority: Authority, issued: Issued) -> ClientTls:
    return trusting(authority, certificate=issued.certificate, key=issued.key)


@asynccontextmanager
async def pair(
    server_tls: TlsConfig | None, client_tls: ClientTls | None, **more: Any
) -> AsyncIterator[tuple[Server, Pool]]:
    async with (
        Server(one_by_one(Answers()), tls=server_tls, **more) as server,
        Pool(tls=client_tls) as pool,
    ):
        yield server, pool


async def echoed(server: Server, pool: Pool, body: bytes = b"body") -> bytes:
    """What the server sends back."""
    reply = await pool.ask(server.address, Echo("hello"), body=body, deadline=soon())
    return bytes(reply.body)
