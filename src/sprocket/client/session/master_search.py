"""Finds the new master of a broker whose known one is gone, refuses, or does not answer.

Whoever fails at a broker reports it here. Then the route of one of the broker's topics is fetched
at once and repeatedly, by one task for all who wait, until a name server names another master or
nobody has failed for some seconds. Meanwhile each waits on `RouteCache.moved`. So a client goes on
as soon as a name server knows the new master, and its name servers get a few requests a second.

A master that is frozen fails nobody: its connection is open, and its replies do not come. So a call
that is not answered for half a second counts as a failure. Once there is another master, what still
waits for the former one is ended, and repeated at the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from itertools import chain, repeat, takewhile
from typing import TypeVar

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, SprocketError, TransportError
from sprocket.base.ports import Entropy
from sprocket.client.session.routes import RouteCache
from sprocket.clientcore.attempts import is_refusal
from sprocket.message.queue import LOGICAL_PREFIX
from sprocket.protocol.codes import MASTER
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds between two requests for a route: the first and the longest pause in the beginning, while
#: an election is likely, and the pause after that.
_PAUSE_FIRST = 0.05
_PAUSE_LONGEST = 0.5
_PAUSE_LATER = 2.0
_BEGINNING_SECONDS = 10.0
#: Seconds before a call is repeated at a master that failed: the first pause and the longest.
_REPEAT_FIRST = 0.05
_REPEAT_LONGEST = 1.0
#: A search ends when nobody has failed at the broker for so long, s.
_QUIET_SECONDS = 5.0
#: Seconds between two checks for calls that are not answered; they wait for one to two of these.
_CHECK_SECONDS = 0.5
#: Seconds that a former master has to answer what it was asked while it was the master, unless it
#: is silent already.
_GRACE_SECONDS = 1.0


class MasterSearch:
    """Searches for the new masters of brokers, for all clients of one session.

    Args:
        routes: the routes, which it fetches.
        pool: the connections that the calls of the clients use.
        entropy: randomises the pauses, so that many clients do not all ask at once.
    """

    def __init__(self, routes: RouteCache, pool: Pool, entropy: Entropy) -> None:
        self._routes = routes
        self._pool = pool
        self._entropy = entropy
        self._loop = asyncio.get_running_loop()
        #: By broker name, until when it is searched for, and a topic that it has.
        self._suspected: dict[str, tuple[float, str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._endings: set[asyncio.Task[None]] = set()
        #: Addresses of masters that did not answer in time at the last check.
        self._silent: set[str] = set()
        self._is_closed = False

    def suspect(self, broker: str, topic: str = "") -> None:
        """Records that a call to the master of a broker failed just now, and searches.

        Args:
            topic: one that the broker has, if no route tells.
        """
        self._suspected[broker] = (self._loop.time() + _QUIET_SECONDS, topic)
        if broker not in self._tasks and not self._is_closed:
            self._tasks[broker] = asyncio.ensure_future(self._search(broker))

    def failed(self, broker: str, error: SprocketError, topic: str = "") -> None:
        """Records that a call to the master of a broker failed, if another one may be needed."""
        if isinstance(error, TransportError) or is_refusal(error):
            self.suspect(broker, topic)

    async def call(
        self,
        broker: str,
        topic: str,
        ask: Callable[[str], Awaitable[T]],
        deadline: Deadline,
        *,
        patience: float = math.inf,
        is_repeatable: bool = True,
    ) -> T:
        """Has the master of a broker asked, and if that fails, its next master until the deadline.

        Args:
            topic: one that the broker has.
            ask: takes the master's address; raises a `SprocketError` if it fails.
            patience: seconds after the first failure in which it is repeated.
            is_repeatable: whether that may be done twice. Else it is repeated only if it was
                certainly not done.

        Raises:
            SprocketError: the last failure, or one that another master would repeat.
        """
        waits = pauses(_REPEAT_FIRST, _REPEAT_LONGEST, entropy=self._entropy)
        while True:
            address = self._routes.address(broker)
            try:
                if address is None:
                    raise ConnectFailed(f"no route has the address of broker {broker!r}")
                return await ask(address)
            except SprocketError as error:
                self.failed(broker, error, topic)
                deadline, patience = deadline.sooner(patience), math.inf
                is_lost = is_repeatable and isinstance(error, TransportError)
                if not (is_lost or is_refusal(error)) or not deadline.left():
                    raise
            await self._routes.moved(broker, address, deadline.sooner(next(waits)))

    async def close(self) -> None:
        """Ends all searches, and begins no more."""
        self._is_closed = True
        tasks = [*self._tasks.values(), *self._endings]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _search(self, broker: str) -> None:
        former = self._routes.address(broker)
        waits = self._waits()
        try:
            while self._loop.time() < self._suspected[broker][0]:
                await self._fetch_one(broker)
                if self._routes.address(broker) not in (None, former):
                    await self._fetch_others(broker)
                    return
                await asyncio.sleep(next(waits))
        except Exception:  # root of a task: the next failure begins another search
            logger.exception("the search for the master of %s ended", broker)
        finally:
            del self._suspected[broker], self._tasks[broker]

    def _waits(self) -> chain[float]:
        """Seconds between the requests of one search."""
        ends_at = self._loop.time() + _BEGINNING_SECONDS
        growing = pauses(_PAUSE_FIRST, _PAUSE_LONGEST, factor=1.5, entropy=self._entropy)
        return chain(
            takewhile(lambda _: self._loop.time() < ends_at, growing), repeat(_PAUSE_LATER)
        )

    async def _fetch_one(self, broker: str) -> None:
        """Fetches one route that tells the broker's addresses."""
        topics = self._routes.topics_of(broker)
        topic = self._suspected[broker][1]
        if topic not in topics and topics:
            topic = topics[0]
        if topic:
            await self._fetch(topic)

    async def _fetch_others(self, broker: str) -> None:
        """Fetches the broker's other routes: some were read while it had no master."""
        for topic in self._routes.topics_of(broker):
            await self._fetch(topic)

    async def _fetch(self, topic: str) -> None:
        with contextlib.suppress(SprocketError):  # the route stays, and is fetched again
            await self._routes.fetch(topic, Deadline.never())

    # A frozen master.

    async def watch(self) -> None:
        """Searches for the masters that do not answer calls in time, until cancelled."""
        asked: dict[str, tuple[Peer, int]] = {}
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            before, asked = asked, {}
            self._silent.clear()
            for broker, number, address in self._routes.brokers():
                peer = self._pool.connected(address) if number == MASTER else None
                if peer is None or broker.startswith(LOGICAL_PREFIX):
                    continue
                asked[address] = (peer, peer.newest_call)
                known, until = before.get(address, (None, 0))
                if known is peer and peer.is_unanswered(until):
                    self._silent.add(address)
                    self.suspect(broker)

    def replaced(self, address: str) -> None:
        """Soon ends what still waits for a former master; it is asked for at the new one then."""
        peer = self._pool.connected(address)
        if peer is not None:
            task = asyncio.ensure_future(self._end_calls(address, peer, peer.newest_call))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    async def _end_calls(self, address: str, peer: Peer, until: int) -> None:
        if address not in self._silent:
            await asyncio.sleep(_GRACE_SECONDS)
        masters = [each for _, number, each in self._routes.brokers() if number == MASTER]
        if address not in masters and peer.is_unanswered(until, including_held=True):
            logger.info("%s is no master any more and does not answer: it is let go", address)
            peer.abort()
