"""The servers that keep users: brokers, and name servers that are closed.

Each keeps its own, so what concerns a user goes to all of them.
"""

from __future__ import annotations

import asyncio

from sprocket.admin.caller import Caller
from sprocket.base.errors import NoPermission, ReplyError, TransportError
from sprocket.protocol.requests.route import ReadNameServerConfig

_CLOSED = "authentication=true"


async def account_servers(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, str]:
    """Addresses by name: all masters and all name servers that check signatures; or only the
    masters of a cluster, or one broker.

    A name server that does not answer is taken for one that is like the others.

    Raises:
        UsageError: there is no such broker.
        TransportError: no name server answered.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    if cluster is not None or broker is not None:
        return masters
    addresses = caller.nameservers
    closed = await asyncio.gather(*(_is_closed(caller, each) for each in addresses))
    if not any(closed):
        return masters
    found = {
        f"name server {address}": address
        for address, is_closed in zip(addresses, closed, strict=True)
        if is_closed is not False
    }
    return masters | found


async def _is_closed(caller: Caller, address: str) -> bool | None:
    """Whether a name server checks signatures; None if it does not say."""
    try:
        reply = await caller.ask(address, ReadNameServerConfig())
    except NoPermission:
        return True
    except TransportError:
        return None
    except ReplyError:
        return False
    lines = bytes(reply.body).decode("utf-8", "replace").splitlines()
    return any(line.rpartition(".")[2] == _CLOSED for line in lines)
