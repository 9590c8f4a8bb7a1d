"""Sends requests to name servers and brokers for the functions of this package."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError, UsageError
from sprocket.protocol.bodies import ClusterInfo
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.route import ClusterOf
from sprocket.remoting.alternatives import first_answer
from sprocket.remoting.pool import Pool


class Caller:
    """Sends requests over a pool of connections.

    Args:
        pool: the connections.
        nameservers: `host:port` of each; a query needs only one that answers.
        timeout_ms: time limit of each request.
    """

    def __init__(
        self, pool: Pool, nameservers: Sequence[str], *, timeout_ms: float = 5_000
    ) -> None:
        if not nameservers:
            raise UsageError("no name server is given")
        self._pool = pool
        #: The one that answered last is the first.
        self._nameservers = list(nameservers)
        self._timeout_ms = timeout_ms

    async def ask(self, address: str, header: Header, *, body: Buffer = b"") -> Command:
        """Sends a request to one server and returns its reply, whose code is 0.

        Raises:
            TransportError: it did not answer in time.
            ReplyError: it replied with an error.
        """
        deadline = Deadline.after_ms(self._timeout_ms)
        return await self._pool.ask(address, header, body=body, deadline=deadline)

    async def ask_nameserver(self, header: Header, *, body: Buffer = b"") -> Command:
        """Sends a query to the name servers until one answers; see `remoting.alternatives`.

        Raises:
            TransportError: none of them answered.
            ReplyError: the first that answered replied with an error.
        """
        deadline = Deadline.after_ms(self._timeout_ms)
        failures: list[SprocketError] = []
        answer = await first_answer(
            self._nameservers.copy(),
            lambda address: self._pool.call(address, header, body=body, deadline=deadline),
            failures=failures,
        )
        if answer is None:
            raise failures[-1]
        address, reply = answer
        self._nameservers.remove(address)
        self._nameservers.insert(0, address)
        return reply.checked()

    async def tell_nameservers(self, header: Header) -> None:
        """Sends a request to all name servers, also if one of them cannot be reached.

        Raises:
            TransportError, ReplyError: the error of the first that failed.
        """
        results = await asyncio.gather(
            *(self.ask(address, header) for address in self._nameservers), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def cluster_info(self) -> ClusterInfo:
        """All brokers and clusters, as the name server knows them."""
        reply = await self.ask_nameserver(ClusterOf())
        return ClusterInfo.decode(reply.body)

    async def masters(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, str]:
        """Addresses of masters by broker name, sorted: of all, of a cluster, or of one broker.

        Raises:
            UsageError: there is no such master.
        """
        info = await self.cluster_info()
        found = {
            name: data.broker_addrs[MASTER]
            for name, data in sorted(info.broker_addr_table.items())
            if MASTER in data.broker_addrs
            and cluster in (None, data.cluster)
            and broker in (None, name)
        }
        if not found:
            wanted = f"broker {broker}" if broker else f"cluster {cluster}" if cluster else "broker"
            raise UsageError(f"no {wanted} is registered with a master")
        return found
