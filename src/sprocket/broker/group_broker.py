"""A broker that belongs to a group with an elector: which of the group leads may change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.base.troubles import Troubles
from sprocket.broker.members.leadership import Leadership
from sprocket.broker.members.seat import Seat
from sprocket.broker.open_broker import OpenBroker
from sprocket.broker.role_changes import RoleChanges
from sprocket.broker.work import RunningWork
from sprocket.election.elector import CallingElector, Elector, ElectorUnavailable
from sprocket.remoting import address as addresses
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)

#: Pause before an elector that does not answer is asked again, s.
_AGAIN_SECONDS = 1.0
#: How long a stop waits until another member has everything and leads, s.
_HAND_OVER_SECONDS = 3.0


class GroupBroker:
    """The tasks of one broker of a group, and what it has open.

    Args:
        make: makes what is to be opened, for a place in the group.
        pool: connections to the other members.
        lease: for so long a master may lead without a sign of life, s.
        is_unclean: whether this broker may lead without being in sync, if none that is lives.
        on_open: is called with what is open now, and with None while nothing is.
        failure: gets the error with which a task ends.
    """

    def __init__(
        self,
        elector: Elector,
        make: Callable[[Seat], OpenBroker],
        *,
        pool: Pool,
        lease: float,
        is_unclean: bool,
        on_open: Callable[[OpenBroker | None], None],
        failure: asyncio.Future[None],
    ) -> None:
        self._elector = elector
        self._make = make
        self._pool = pool
        self._lease = lease
        self._is_unclean = is_unclean
        self._on_open = on_open
        self._running = RunningWork(failure)
        self._roles: RoleChanges | None = None

    async def open(self, address: str, replication_port: int) -> None:
        """Joins the group, opens everything as a slave, and begins to follow who leads.

        Raises:
            ElectionRefused: the number of this broker belongs to another one.
            DirectoryInUse, ConfigError, StoreError: as `OpenBroker.open`.
        """
        host, _ = addresses.split(address)
        number = await self._join(address, addresses.join(host, replication_port))
        self._roles = roles = RoleChanges(
            lambda: self._make(seat), self._elector, number=number, on_open=self._on_open
        )
        leadership = Leadership(
            self._elector,
            roles,
            pool=self._pool,
            number=number,
            lease=self._lease,
            is_unclean=self._is_unclean,
        )
        elector = self._elector
        more = elector.endpoints() if isinstance(elector, CallingElector) else {}
        seat = Seat(
            self._elector,
            number,
            replication_port,
            self._lease,
            {**leadership.endpoints(), **more},
            leadership.wake,
            roles.hand_over,
        )
        await roles.open()
        self._running.run("elector", self._elector.run)
        self._running.run("leadership", leadership.run)

    async def hand_over(self) -> None:
        """Gives the lead to another member, if this one leads, and lets the role change no more."""
        try:
            if self._roles is not None:
                await self._roles.hand_over(Deadline.after(_HAND_OVER_SECONDS))
        except SprocketError as error:
            logger.warning("the lead is not handed over: %s", error)
        await self._running.end()

    async def close(self) -> None:
        """Leaves the group and closes what is open."""
        await self._running.end()
        await self._elector.leave()
        if self._roles is not None:
            await self._roles.close()

    async def _join(self, address: str, replication_address: str) -> int:
        troubles = Troubles(asyncio.get_running_loop().time, logger)
        while True:
            try:
                number = await self._elector.join(address, replication_address)
            except ElectorUnavailable as error:
                troubles.failed("join", "the broker waits for its elector", error)
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            troubles.ended("join", "the elector answers")
            return number
