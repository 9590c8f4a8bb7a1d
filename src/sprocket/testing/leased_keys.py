"""A store of leased keys in the simulated network, as three servers of etcd would be one.

All servers share one state, so answers are linearizable; a server answers only while it reaches
more than half of them. Requests, answers and watches travel as lines of JSON over simulated
connections, and so are lost, late, cut or held like all else. Leases end in virtual time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec

from sprocket.base.deadline import Deadline
from sprocket.election.elector import ElectorUnavailable
from sprocket.election.leased_keys import (
    Compare,
    Delete,
    GrantedLease,
    KeyValue,
    LeaseGone,
    Picture,
    Put,
    Transacted,
)
from sprocket.testing.cluster import Machine
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.key_state import KeyState
from sprocket.testing.network import Network

KEYS_PORT = 2379

#: Seconds that a request waits for a majority before it is dropped without an answer.
_MAJORITY_SECONDS = 30.0


class KeyServers:
    """The servers of one store, each on a host of its own, `keys-0` and so on.

    Args:
        network: the network of the running simulation.
        count: how many servers there are.
        state: what they keep; it outlives them.

    Attributes:
        machines: the servers, to be paused, killed and started again.
    """

    def __init__(self, network: Network, *, count: int = 3, state: KeyState | None = None) -> None:
        self.state = state or KeyState()
        self.machines = [
            Machine(network, f"keys-{n}", self._serve, MemoryDisk()) for n in range(count)
        ]
        self._network = network

    @property
    def addresses(self) -> list[str]:
        """The servers' addresses for clients, `host:port`."""
        return [f"{machine.address}:{KEYS_PORT}" for machine in self.machines]

    async def start(self) -> None:
        """Starts all servers that do not run."""
        for machine in self.machines:
            if not machine.is_running:
                await machine.start()

    def client(self, *, timeout: float = 0.6) -> SimulatedKeys:
        """A client for the process that uses it."""
        return SimulatedKeys(self.addresses, timeout)

    @asynccontextmanager
    async def _serve(self, machine: Machine) -> AsyncIterator[KeyServers]:
        connections: set[_KeyConnection] = set()
        server = await asyncio.get_running_loop().create_server(
            lambda: _KeyConnection(self, machine, connections), machine.address, KEYS_PORT
        )
        try:
            yield self
        finally:
            server.close()
            for each in [*connections]:
                each.end()

    async def answer_late(self, connection: _KeyConnection, request: dict[str, Any]) -> None:
        """Answers a request that needs a majority, or more than one answer."""
        give_up = Deadline.after(_MAJORITY_SECONDS)
        while not self.has_majority(connection.machine):
            if not give_up.left():
                connection.close()
                return
            await asyncio.sleep(0.05)
        if request["op"] == "watch":
            await self._watch(connection, request["prefix"], request["revision"])
            connection.close()
        else:
            connection.write(self.answer(request))

    def answer(self, request: dict[str, Any]) -> Any:
        """What a request has as its answer."""
        state = self.state
        match request["op"]:
            case "get":
                picture = state.get(request["prefix"])
                return [picture.revision, [list(each) for each in picture.keys.values()]]
            case "transact":
                changes = [Put(*c) if len(c) > 1 else Delete(*c) for c in request["changes"]]
                return state.transact([Compare(*c) for c in request["compares"]], changes)
            case "grant":
                return state.grant(request["seconds"])
            case "keep_alive":
                return state.keep_alive(request["lease"])
            case _:
                return state.revoke(request["lease"])

    async def _watch(self, connection: _KeyConnection, prefix: str, revision: int) -> None:
        while not connection.is_closing:
            majority = self.has_majority(connection.machine)
            found = self.state.changes(prefix, revision) if majority else []
            if found is None:
                return
            for each in found:
                connection.write(each)
                revision = each + 1
            await self.state.changed.reach(self.state.revision + 1, Deadline.after(0.5))

    def has_majority(self, machine: Machine) -> bool:
        """Whether a server reaches more than half of all."""
        reached = [
            each
            for each in self.machines
            if each.is_running and not self._network.is_cut(machine.name, each.name)
        ]
        return len(reached) * 2 > len(self.machines)


class _Lines(asyncio.Protocol):
    """One end of a connection that carries lines of JSON."""

    # Streams do the same with four callbacks more for each request, and requests for keys are a
    # third of all traffic of a quiet group.

    def __init__(self) -> None:
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.receive(msgspec.json.decode(line))

    def receive(self, value: Any) -> None:
        """Takes a line that came whole."""
        raise NotImplementedError

    @property
    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport is None or self._transport.is_closing()

    def write(self, value: Any) -> None:
        """Sends a line."""
        if self._transport is not None:
            self._transport.write(msgspec.json.encode(value) + b"\n")

    def close(self) -> None:
        """Closes after what was written."""
        if self._transport is not None:
            self._transport.close()


class _KeyConnection(_Lines):
    """A connection at the end of a server. A request that waits is answered in its turn; it takes
    effect though its client has closed the connection, as in etcd."""

    def __init__(
        self, servers: KeyServers, machine: Machine, connections: set[_KeyConnection]
    ) -> None:
        super().__init__()
        self.machine = machine
        self._connections = connections
        connections.add(self)
        self._servers = servers
        self._waiting: deque[dict[str, Any]] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._is_ended = False

    def receive(self, value: Any) -> None:
        is_next = self._answering is None and value["op"] != "watch"
        if is_next and self._servers.has_majority(self.machine):
            self.write(self._servers.answer(value))
            return
        self._waiting.append(value)
        if self._answering is None:
            self._answering = asyncio.ensure_future(self._answer_late())

    async def _answer_late(self) -> None:
        while self._waiting:
            await self._servers.answer_late(self, self._waiting.popleft())
        self._answering = None
        if self._is_ended:
            self.close()

    def eof_received(self) -> bool:
        self._is_ended = True
        return self._answering is not None

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def end(self) -> None:
        """Ends it with its server: what waits is not answered."""
        if self._answering is not None:
            self._answering.cancel()
        self.close()


class _KeyRequest(_Lines):
    """A connection at the end of a client, for one request with one answer."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__()
        self._request = request
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.write(self._request)

    def receive(self, value: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def eof_received(self) -> bool:
        self.connection_lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc or ConnectionAbortedError("no answer came"))
            self.answer.exception()


class SimulatedKeys:
    """A `LeasedKeys` in a simulated process.

    Args:
        addresses: of the servers, `host:port`; they are tried in turn.
        timeout: seconds after which the next one is tried.
    """

    def __init__(self, addresses: Sequence[str], timeout: float) -> None:
        self._addresses = [*addresses]
        self._timeout = timeout

    async def get(self, prefix: str) -> Picture:
        """All keys that begin with a prefix."""
        revision, found = await self._ask({"op": "get", "prefix": prefix})
        return Picture(revision, {each[0]: KeyValue(*each) for each in found})

    async def transact(
        self, compares: Sequence[Compare], changes: Sequence[Put | Delete]
    ) -> Transacted:
        """Makes all changes if all comparisons hold, else none."""
        made = await self._ask({"op": "transact", "compares": compares, "changes": changes})
        if made is None:
            raise LeaseGone("the lease has ended")
        return Transacted(*made)

    async def grant(self, seconds: float) -> GrantedLease:
        """Makes a lease."""
        return GrantedLease(*await self._ask({"op": "grant", "seconds": seconds}))

    async def keep_alive(self, lease: int) -> float:
        """Lets a lease begin anew."""
        return float(await self._ask({"op": "keep_alive", "lease": lease}))

    async def revoke(self, lease: int) -> None:
        """Ends a lease."""
        await self._ask({"op": "revoke", "lease": lease})

    async def watch(self, prefix: str, revision: int) -> AsyncIterator[int]:
        """The revisions of changes under a prefix."""
        request = {"op": "watch", "prefix": prefix, "revision": revision}
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await asyncio.open_connection(*_place(self._addresses[0]))
            try:
                writer.write(msgspec.json.encode(request) + b"\n")
                while line := await reader.readline():
                    yield int(line)
            finally:
                writer.close()
        except (OSError, ValueError) as error:
            raise ElectorUnavailable(f"the watch is lost: {error}") from error

    async def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    async def _ask(self, request: dict[str, Any]) -> Any:
        for address in [*self._addresses]:
            with suppress(OSError, ValueError):
                async with asyncio.timeout(self._timeout):
                    _, connection = await asyncio.get_running_loop().create_connection(
                        lambda: _KeyRequest(request), *_place(address)
                    )
                    try:
                        return await connection.answer
                    finally:
                        connection.close()
            self._addresses.append(self._addresses.pop(0))
        raise ElectorUnavailable("no server of keys answers")


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
