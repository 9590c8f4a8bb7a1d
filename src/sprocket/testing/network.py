"""A network in memory whose delays and faults depend on a seed.

Hosts have names and addresses. Bytes between them are delayed and may arrive in pieces. A test can
break single connections, and cut or slow the link between two hosts.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.process import SimulatedProcess, current_process
from sprocket.testing.wire import Signal, SimulatedTransport

if TYPE_CHECKING:
    from sprocket.testing.loop import SimulatedLoop

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("", "0.0.0.0", "::", None)
#: The host of code outside of all processes.
_OUTSIDE = "outside"
#: Seconds after which connecting over a cut link fails.
_CONNECT_SECONDS = 60.0


class Fates(NamedTuple):
    """Probabilities that a reply is lost, comes twice, or comes late, after later ones."""

    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    late_seconds: float = 5.0


class Listening:
    """The server that `create_server` returns on a simulated loop."""

    def __init__(
        self,
        network: Network,
        factory: Callable[[], asyncio.BaseProtocol],
        place: tuple[str, int],
        *,
        is_local_only: bool,
    ) -> None:
        self.network = network
        self.factory = factory
        self.place = place
        self.is_local_only = is_local_only
        self.process = current_process()
        self.context: Context = copy_context()

    @property
    def sockets(self) -> tuple[Any, ...]:
        """A stand-in for its socket, with `getsockname`."""
        return (_Name(self.network.address_of(self.place[0]), self.place[1]),)

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self.network.listeners.get(self.place) is self

    def close(self) -> None:
        """Accepts no more connections; existing ones stay open."""
        if self.is_serving():
            del self.network.listeners[self.place]

    async def wait_closed(self) -> None:
        """Returns at once."""


class _Name:
    def __init__(self, host: str, port: int) -> None:
        self._name = (host, port)

    def getsockname(self) -> tuple[str, int]:
        return self._name


class Network:
    """Carries bytes between simulated processes.

    Args:
        seed: decides all delays and pieces.
        delay: the shortest and the longest one-way delay between two hosts, in seconds.
        pieces: probability that a write arrives in two reads.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        delay: tuple[float, float] = (0.0001, 0.002),
        pieces: float = 0.1,
    ) -> None:
        self.loop: SimulatedLoop
        self.entropy = SeededEntropy(f"network {seed}")
        self.listeners: dict[tuple[str, int], Listening] = {}
        self._delay = delay
        self._pieces = pieces
        self._addresses: dict[str, str] = {}
        self._next_port = 30_000
        self._endpoints: dict[SimulatedTransport, None] = {}
        #: Hosts between which nothing travels, in the direction of each pair.
        self._cuts: set[tuple[str, str]] = set()
        self._slow: dict[frozenset[str], float] = {}
        #: By host, the faults of its replies.
        self._answers: dict[str, Fates] = {}
        self._digest = hashlib.blake2b(digest_size=8)

    # Names and time.

    def now(self) -> float:
        """The loop's time, in seconds."""
        return self.loop.time()

    def host_of(self, process: SimulatedProcess | None) -> str:
        """The host of a process; code outside of all processes has a host of its own."""
        return _OUTSIDE if process is None else process.host

    def address_of(self, host: str) -> str:
        """The address of a host by name or address. Loopback is the current process's host.

        Raises:
            OSError: no such host.
        """
        if host in _LOOPBACK:
            host = self.host_of(current_process())
        if host in self._addresses.values():
            return host
        if host not in self._addresses:
            if host[:1].isdigit():
                raise socket.gaierror(socket.EAI_NONAME, f"no simulated host {host}")
            self._addresses[host] = f"10.0.0.{len(self._addresses) + 1}"
        return self._addresses[host]

    def _name_of(self, host: str) -> str:
        address = self.address_of(host)
        return next(name for name, found in self._addresses.items() if found == address)

    # The history, as a digest.

    def note(self, what: str) -> None:
        """Adds an event to the history."""
        self._digest.update(f"{self.now():.6f} {what}\n".encode())

    def note_delivery(self, end: SimulatedTransport, content: bytes) -> None:
        """Adds an arrival to the history."""
        self.note(f"{end.other.host}>{end.host}")
        self._digest.update(content)

    @property
    def history(self) -> str:
        """A digest of all deliveries and their times: equal only for equal histories."""
        return self._digest.hexdigest()

    # Delays and faults.

    def draw_seconds(self, low: float, high: float) -> float:
        """A random time in [low, high), in seconds."""
        return self.entropy.between(low, high)

    def draw_delay(self, one: str, other: str) -> float:
        """A random one-way delay between two hosts, in seconds."""
        if one == other:
            return self.entropy.between(0.00001, 0.0001)
        return self.entropy.between(*self._delay) + self._slow.get(frozenset((one, other)), 0.0)

    def pieces(self, content: bytes) -> Iterator[bytes]:
        """The pieces in which a write arrives."""
        if len(content) > 1 and self.entropy.happens(self._pieces):
            at = 1 + self.entropy.below(len(content) - 1)
            yield content[:at]
            yield content[at:]
        else:
            yield content

    def cut(self, one: str, other: str) -> None:
        """Cuts the link between two hosts until `heal`."""
        self._cuts |= {(one, other), (other, one)}

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """Holds what one host sends to another until `heal`; the other direction works."""
        self._cuts.add((sender, receiver))

    def cut_off(self, host: str) -> None:
        """Cuts the links between a host and all others until `heal`."""
        for other in self._addresses:
            if other != host:
                self.cut(host, other)

    def heal(self) -> None:
        """Ends all cuts, delays and faults of replies; held bytes arrive late."""
        self._cuts.clear()
        self._slow.clear()
        self._answers.clear()
        for end in self._endpoints:
            end.carry_on()

    def slow(self, one: str, other: str, seconds: float) -> None:
        """Adds `seconds` to the delay between two hosts until `heal`."""
        self._slow[frozenset((one, other))] = seconds

    def distort(self, host: str, fates: Fates) -> None:
        """Loses, doubles or delays replies of a host's servers until `heal`."""
        self._answers[host] = fates

    def fate(self, host: str) -> tuple[float, ...]:
        """Seconds after which a reply of a host is sent: one number, two of them, or none."""
        fates = self._answers.get(host)
        if fates is None:
            return (0.0,)
        if self.entropy.happens(fates.lost):
            return ()
        late = self.entropy.happens(fates.late)
        first = self.entropy.between(0.0, fates.late_seconds) if late else 0.0
        return (first, first) if self.entropy.happens(fates.twice) else (first,)

    def is_cut(self, one: str, other: str) -> bool:
        """Whether nothing travels from one host to another."""
        return one != other and (one, other) in self._cuts

    def break_connections(self, host: str | None = None, *, probability: float = 1.0) -> None:
        """Breaks each connection, of all hosts or of one, with a probability."""
        for end in [*self._endpoints]:
            if host not in (None, end.host) or end.is_lost:
                continue
            if self.entropy.happens(probability):
                reset = ConnectionResetError(104, "connection reset by peer")
                end.sever(reset)
                end.other.sever(reset)

    def freeze(self, host: str) -> None:
        """Loses for ever all bytes on a host's present connections, without an error at either end.

        New connections work, as after a restart of a router that has forgotten the old ones.
        Connections of observers, outside of all processes, are spared.
        """
        for end in self._endpoints:
            if end.host == host and end.other.host != _OUTSIDE:
                end.is_frozen = end.other.is_frozen = True

    def kill(self, process: SimulatedProcess, *, silently: bool = False) -> None:
        """Removes a process from the network. Its peers get an end or a reset unless `silently`."""
        for listening in [*self.listeners.values()]:
            if listening.process is process:
                listening.close()
        for end in [*self._endpoints]:
            if end.process is process:
                word = Signal.RESET if self.entropy.happens(0.5) else Signal.END
                end.die(None if silently else word)

    def forget(self, end: SimulatedTransport) -> None:
        """Removes a closed end."""
        self._endpoints.pop(end, None)

    # Called by the loop.

    def listen(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int
    ) -> Listening:
        """Accepts connections at a port of the current process's host; port 0 is a free one.

        Raises:
            OSError: the port is in use, or the address belongs to another host.
        """
        mine = self.host_of(current_process())
        if host not in _ANYWHERE and self._name_of(host or "") != mine:
            raise OSError(99, "cannot assign requested address")
        place = (mine, port or self._new_port())
        if place in self.listeners:
            raise OSError(98, "address already in use")
        listening = Listening(self, factory, place, is_local_only=host in _LOOPBACK)
        self.listeners[place] = listening
        return listening

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        """Makes a connection from the current process.

        Raises:
            OSError: nobody listens there, the link is cut, or the process is dead.
        """
        # It waits for a delay there and one back. In between the process may die or its connection
        # may break, so both are checked again before the protocol learns of the connection.
        process = current_process()
        mine, theirs = self.host_of(process), self._name_of(host)
        await self._travel(mine, theirs)
        listening = self.listeners.get((theirs, port))
        if listening is None or (listening.is_local_only and mine != theirs):
            await self._travel(mine, theirs)
            raise ConnectionRefusedError(111, f"nobody listens at {host}:{port}")
        if process is not None and not process.is_alive:
            raise OSError(101, "the process is dead")
        end = SimulatedTransport(
            self, process, self._place(mine, theirs, self._new_port()), copy_context()
        )
        far = SimulatedTransport(
            self, listening.process, self._place(theirs, mine, port), listening.context
        )
        end.join(far)
        far.is_answering = True
        self._endpoints[end] = self._endpoints[far] = None
        self.loop.call_soon(far.begin, listening.factory, context=listening.context)
        await self._travel(mine, theirs)
        if end.is_lost:
            raise ConnectionResetError(104, "connection reset by peer")
        protocol = end.begin(factory)
        assert protocol is not None
        return end, protocol

    async def _travel(self, one: str, other: str) -> None:
        """Waits for the delay from one host to the other.

        Raises:
            TimeoutError: the link was cut for too long.
        """
        give_up = self.now() + _CONNECT_SECONDS
        await asyncio.sleep(self.draw_delay(one, other))
        while self.is_cut(one, other):
            if self.now() > give_up:
                raise TimeoutError(110, "connection timed out")
            await asyncio.sleep(1.0)

    def _place(self, host: str, seen_by: str, port: int) -> tuple[str, int]:
        return ("127.0.0.1" if host == seen_by else self.address_of(host), port)

    def _new_port(self) -> int:
        self._next_port += 1
        return self._next_port
