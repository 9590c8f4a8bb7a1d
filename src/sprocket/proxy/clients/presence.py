"""Makes the clients of a proxy known to the brokers, so that operators see groups and members.

To a broker in the same process each client is a member with a peer of its own; what brokers
elsewhere are told is in `broker_members`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import NamedTuple

from sprocket.base.cancelling import cancel_begun
from sprocket.base.errors import SprocketError
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import Heartbeat
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.broker_members import (
    MembersElsewhere,
    farewells,
    heartbeat_of,
)
from sprocket.proxy.clients.served_clients import GroupKey, ServedClient, ServedClients

logger = logging.getLogger(__name__)

#: Seconds between signs of life to brokers elsewhere. They forget a member after two minutes.
_BEAT_SECONDS = 20.0
#: Signs of life that come sooner are not passed on: one of a client with thousands of topics costs
#: a broker tens of milliseconds.
_BEAT_SECONDS_MIN = 5.0
#: How long brokers may take at the end.
_LEAVE_SECONDS = 3.0
#: A change is told after so many seconds, with others that come meanwhile.
_SOON_SECONDS = 0.2


class _KnownInside(NamedTuple):
    """What the broker in the same process was told of a client last, and when."""

    revision: int
    groups: frozenset[GroupKey]
    at: float


class Presence:
    """Tells brokers of clients that come, change and leave.

    Args:
        own_id: the proxy's id as a client of brokers.
        inner: the address of a broker in the same process, if there is one.
    """

    def __init__(
        self, brokers: Brokers, clients: ServedClients, own_id: str, *, inner: str | None
    ) -> None:
        self._brokers = brokers
        self._clients = clients
        self._own_id = own_id
        self._inner = inner
        self._soon = asyncio.Event()
        self._elsewhere: dict[str, MembersElsewhere] = {}
        self._loop = asyncio.get_running_loop()
        #: By client id, the revision that brokers were told of, and what the broker in the same
        #: process knows.
        self._told: dict[str, int] = {}
        self._inside: dict[str, _KnownInside] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, client: ServedClient) -> None:
        """Makes a client known that is new or has changed, or shows that it lives."""
        if self._inner is not None:
            self._beat_inside(self._inner, client)
        if self._told.get(client.client_id) != client.revision:
            self._soon.set()

    def withdraw(self, client: ServedClient) -> None:
        """A client is gone. A broker in the same process learns it by the end of its peer."""
        self._inside.pop(client.client_id, None)
        if self._told.pop(client.client_id, None) is not None:
            self._soon.set()

    def _beat_inside(self, address: str, client: ServedClient) -> None:
        known, now = self._inside.get(client.client_id), self._loop.time()
        if known is not None:
            if known.revision == client.revision and now - known.at < _BEAT_SECONDS_MIN:
                return
            for farewell in farewells(client.client_id, known.groups - client.groups):
                self._ask_inside(address, farewell, b"", client)
        self._inside[client.client_id] = _KnownInside(client.revision, client.groups, now)
        self._ask_inside(address, Heartbeat(), heartbeat_of(client).encode(), client)

    def _ask_inside(self, address: str, header: Header, body: bytes, client: ServedClient) -> None:
        deadline = self._brokers.deadline()
        outcome = self._brokers.call(
            address, header, body=body, deadline=deadline, peer=client.peer
        )
        if not isinstance(outcome, Command):  # of a client with many groups
            self._start(self._until_known(client, outcome))

    async def _until_known(self, client: ServedClient, outcome: Awaitable[Command]) -> None:
        try:
            await outcome
        except SprocketError as error:
            logger.info("client %s is not made known: %s", client.client_id, error)

    async def run(self) -> None:
        """Tells brokers elsewhere of changes and that the clients live, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_BEAT_SECONDS):
                    await self._soon.wait()
                await asyncio.sleep(_SOON_SECONDS)
            except TimeoutError:
                pass
            self._soon.clear()
            await self._tell({each.client_id: each for each in self._clients if each.revision})

    async def _tell(self, clients: dict[str, ServedClient]) -> None:
        self._told = {name: each.revision for name, each in clients.items()}
        addresses = set(self._brokers.masters().values()) - {self._inner}
        for gone in self._elsewhere.keys() - addresses:
            await self._elsewhere.pop(gone).close()
        for new in addresses - self._elsewhere.keys():
            self._elsewhere[new] = MembersElsewhere(self._brokers, new, self._own_id)
        for each in self._elsewhere.values():
            each.update(clients)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Takes the clients' leave of the brokers."""
        leaving = (each.leave(_LEAVE_SECONDS) for each in self._elsewhere.values())
        await asyncio.gather(*leaving)
        for task in tuple(self._tasks):
            cancel_begun(task)
        await asyncio.gather(*self._tasks, return_exceptions=True)
