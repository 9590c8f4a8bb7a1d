"""Runs one admin call for a command, with connections to the name servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller

T = TypeVar("T")


def ask(nameservers: str, timeout: float, question: Callable[[Caller], Awaitable[T]]) -> T:
    """Runs `question` with a caller for these name servers and returns its result.

    Args:
        nameservers: `host:port`, several with `;` between them.
        timeout: seconds that each request may take.
    """
    from sprocket.admin.caller import Caller
    from sprocket.cli import loading
    from sprocket.client.base.nameservers import nameserver_addresses
    from sprocket.remoting.pool import Pool

    addresses = nameserver_addresses(nameservers, {})
    client = loading.client()
    signer, tls = client.signer(), client.tls_of_client()

    async def main() -> T:
        async with Pool(signer=signer, tls=tls) as pool:
            return await question(Caller(pool, addresses, timeout_ms=timeout * 1000))

    return run(main())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end as `asyncio.run` does.

    Ctrl-C while the loop is made leaves the coroutine without a start; it is closed then, because
    Python would warn that nobody awaited it.
    """
    import asyncio

    try:
        return asyncio.run(work)
    finally:
        work.close()
