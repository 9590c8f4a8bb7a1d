"""A store of leased keys in the simulated network, as three servers of etcd would be one.

All servers share one state, so answers are linearizable; a server answers only while it reaches
more than half of them. Requests, answers and watches travel as lines of JSON over simulated
connections, and so are lost, late, cut or held like all else. Leases end in virtual time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Any, NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.watermark import Watermark
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
from sprocket.testing.network import Network

KEYS_PORT = 2379

#: Seconds that a request waits for a majority before it is dropped without an answer.
_MAJORITY_SECONDS = 30.0


class _Kept(NamedTuple):
    value: str
    revision: int
    lease: int


class KeyState:
    """The keys, leases and revisions of one store.

    Args:
        ignores_comparisons: a planted fault: every transaction is made.
        seconds_least: the shortest lease that is granted; etcd's default is 2.

    Attributes:
        changed: the store's revision.
        written: all that was ever written to keys, oldest first.
    """

    def __init__(self, *, ignores_comparisons: bool = False, seconds_least: float = 0.1) -> None:
        self.changed = Watermark(1)
        self._ignores_comparisons = ignores_comparisons
        self._seconds_least = seconds_least
        self.written: list[KeyValue] = []
        self._keys: dict[str, _Kept] = {}
        #: By lease, its length and the time of its end.
        self._leases: dict[int, tuple[float, float]] = {}
        self._lease_number = 0
        #: Revisions of changes with their keys, oldest first.
        self._history: list[tuple[int, str]] = []
        self._compacted = 0
        #: Timers of leases belong to no server: they go on while each of them is paused.
        self._context = copy_context()

    @property
    def revision(self) -> int:
        """The revision of the newest change."""
        return self.changed.value

    def get(self, prefix: str) -> Picture:
        """All keys under a prefix."""
        keys = {
            key: KeyValue(key, kept.value, kept.revision)
            for key, kept in sorted(self._keys.items())
            if key.startswith(prefix)
        }
        return Picture(self.revision, keys)

    def transact(
        self, compares: Sequence[Compare], changes: Sequence[Put | Delete]
    ) -> Transacted | None:
        """Makes a transaction; None if it needs a lease that has ended."""
        for compare in compares:
            kept = self._keys.get(compare.key)
            is_other = (0 if kept is None else kept.revision) != compare.revision
            if is_other and not self._ignores_comparisons:
                return Transacted(False, self.revision)
        if any(isinstance(c, Put) and c.lease and c.lease not in self._leases for c in changes):
            return None
        revision = self.revision + 1
        touched = []
        for change in changes:
            if isinstance(change, Put):
                self._keys[change.key] = _Kept(change.value, revision, change.lease)
                self.written.append(KeyValue(change.key, change.value, revision))
                touched.append(change.key)
            elif self._keys.pop(change.key, None) is not None:
                touched.append(change.key)
        self._record(revision, touched)
        return Transacted(True, self.revision)

    def grant(self, seconds: float) -> GrantedLease:
        """Makes a lease."""
        self._lease_number += 1
        self._begin(self._lease_number, max(seconds, self._seconds_least))
        return GrantedLease(self._lease_number, max(seconds, self._seconds_least))

    def keep_alive(self, lease: int) -> float:
        """Lets a lease begin anew; 0 if it has ended."""
        if lease not in self._leases:
            return 0.0
        seconds, _ = self._leases[lease]
        self._begin(lease, seconds)
        return seconds

    def revoke(self, lease: int) -> None:
        """Ends a lease."""
        if self._leases.pop(lease, None) is None:
            return
        bound = sorted(key for key, kept in self._keys.items() if kept.lease == lease)
        for key in bound:
            del self._keys[key]
        self._record(self.revision + 1, bound)

    def changes(self, prefix: str, revision: int) -> list[int] | None:
        """Revisions of changes under a prefix from a revision on; None if they are forgotten."""
        if revision <= self._compacted:
            return None
        return sorted({r for r, key in self._history if r >= revision and key.startswith(prefix)})

    def lasts_until(self, key: str) -> float:
        """The loop's time at which a key's lease ends; 0 for a key that is not there."""
        kept = self._keys.get(key)
        return 0.0 if kept is None else self._leases[kept.lease][1]

    def compact(self) -> None:
        """Forgets the changes so far: a watch from one of them fails."""
        self._compacted = self.revision
        self._history.clear()

    def _begin(self, lease: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._leases[lease] = (seconds, end)
        loop.call_at(end, self._expire, lease, context=self._context)

    def _expire(self, lease: int) -> None:
        _, end = self._leases.get(lease, (0.0, float("inf")))
        if asyncio.get_running_loop().time() >= end:
            self.revoke(lease)

    def _record(self, revision: int, keys: list[str]) -> None:
        if keys:
            self._history += [(revision, key) for key in keys]
            self.changed.rise(revision)


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
        answering: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # Python 3.11's streams report the cancellation of a coroutine here as an error.
            task = asyncio.ensure_future(self._answer(machine, reader, writer))
            answering.add(task)
            task.add_done_callback(answering.discard)

        server = await asyncio.start_server(accept, machine.address, KEYS_PORT)
        try:
            yield self
        finally:
            server.close()
            for task in answering:
                task.cancel()

    async def _answer(
        self, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            await self._answer_all(machine, reader, writer)
        writer.close()

    async def _answer_all(
        self, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while line := await reader.readline():
            if not line.endswith(b"\n"):
                return
            request = json.loads(line)
            give_up = Deadline.after(_MAJORITY_SECONDS)
            while not self._has_majority(machine):
                if not give_up.left():
                    return
                await asyncio.sleep(0.05)
            if request["op"] == "watch":
                await self._watch(machine, writer, request["prefix"], request["revision"])
                return
            writer.write(json.dumps(self._do(request)).encode() + b"\n")

    def _do(self, request: dict[str, Any]) -> Any:
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

    async def _watch(
        self, machine: Machine, writer: asyncio.StreamWriter, prefix: str, revision: int
    ) -> None:
        while not writer.is_closing():
            found = self.state.changes(prefix, revision) if self._has_majority(machine) else []
            if found is None:
                return
            for each in found:
                writer.write(b"%d\n" % each)
                revision = each + 1
            await self.state.changed.reach(self.state.revision + 1, Deadline.after(0.5))

    def _has_majority(self, machine: Machine) -> bool:
        reached = [
            each
            for each in self.machines
            if each.is_running and not self._network.is_cut(machine.name, each.name)
        ]
        return len(reached) * 2 > len(self.machines)


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
                reader, writer = await self._connect(self._addresses[0])
            try:
                writer.write(json.dumps(request).encode() + b"\n")
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
                    reader, writer = await self._connect(address)
                    try:
                        writer.write(json.dumps(request).encode() + b"\n")
                        return json.loads(await reader.readline())
                    finally:
                        writer.close()
            self._addresses.append(self._addresses.pop(0))
        raise ElectorUnavailable("no server of keys answers")

    async def _connect(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = address.rpartition(":")
        return await asyncio.open_connection(host, int(port))
