"""Sends requests to name servers and brokers for the functions of this package.

What concerns several brokers is asked of all of them at the same time, so that one that does not
answer costs the others nothing. If it is done at some of them only, `BrokersFailed` says at which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError, UsageError
from sprocket.protocol.bodies import ClusterInfo
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.route import ClusterOf
from sprocket.remoting.alternatives import first_answer
from sprocket.remoting.pool import Pool

T = TypeVar("T")


class BrokersFailed(SprocketError):
    """Some brokers answered, and others failed. What was asked is done at those that answered.

    Attributes:
        done: names of the brokers that answered.
        failures: the errors of the others, by broker name.
    """

    def __init__(self, done: Sequence[str], failures: Mapping[str, SprocketError]) -> None:
        said = "; ".join(f"{name}: {error}" for name, error in failures.items())
        super().__init__(
            f"only {', '.join(done)} answered; failed at {', '.join(failures)} ({said})"
        )
        self.done = list(done)
        self.failures = dict(failures)


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

    @property
    def nameservers(self) -> list[str]:
        """The addresses of the name servers."""
        return self._nameservers.copy()

    async def ask(self, address: str, header: Header, *, body: Buffer = b"") -> Command:
        """Sends a request to one server and returns its reply, whose code is 0.

        Raises:
            TransportError: it did not answer in time.
            ReplyError: it replied with an error.
        """
        deadline = Deadline.after_ms(self._timeout_ms)
        return await self._pool.ask(address, header, body=body, deadline=deadline)

    async def at_each(
        self,
        servers: Mapping[str, str],
        work: Callable[[str, str], Awaitable[T]],
        *,
        absent: tuple[type[SprocketError], ...] = (),
    ) -> dict[str, T]:
        """Works with several servers at the same time and waits for all.

        Args:
            servers: addresses by name.
            work: takes name and address of one.
            absent: errors that mean that a server has nothing; it is left out of the results.

        Returns:
            The results by name, in the order of `servers`.

        Raises:
            BrokersFailed: some failed, and others did not.
            SprocketError: all failed; the error of the first.
        """
        names = list(servers)
        outcomes = await asyncio.gather(
            *(work(name, servers[name]) for name in names), return_exceptions=True
        )
        results: dict[str, T] = {}
        failures: dict[str, SprocketError] = {}
        done: list[str] = []
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, absent):
                done.append(name)
            elif isinstance(outcome, SprocketError):
                failures[name] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                done.append(name)
                results[name] = outcome
        if failures and done:
            raise BrokersFailed(done, failures)
        for failure in failures.values():
            raise failure
        return results

    async def ask_each(
        self,
        servers: Mapping[str, str],
        header: Header,
        *,
        body: Buffer = b"",
        absent: tuple[type[SprocketError], ...] = (),
    ) -> dict[str, Command]:
        """Sends one request to several servers at the same time; see `at_each`."""

        async def asked(_: str, address: str) -> Command:
            return await self.ask(address, header, body=body)

        return await self.at_each(servers, asked, absent=absent)

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
            BrokersFailed: some failed, and others did not.
            TransportError, ReplyError: all failed; the error of the first.
        """
        await self.ask_each({address: address for address in self._nameservers}, header)

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
