"""Changes what a broker of a group has open as its role changes.

A slave is promoted in place: its store stays open, so the first message is accepted some
milliseconds later. Whoever was a master and is one no more may have messages that the new master
has not. So all is closed and opened again as a slave, and its log is cut where that is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from sprocket.base.deadline import Deadline
from sprocket.broker.members.leadership import MasterContact
from sprocket.broker.open_broker import OpenBroker
from sprocket.election.candidacy import Candidate, Standing, successor
from sprocket.election.elector import Elector, GroupView, LogPosition

logger = logging.getLogger(__name__)


class RoleChanges:
    """The roles of one broker of a group, one after the other.

    Args:
        make: makes what is to be opened.
        elector: decides who leads.
        number: this broker's number.
        on_open: is called with what is open now, and with None while nothing is.
    """

    def __init__(
        self,
        make: Callable[[], OpenBroker],
        elector: Elector,
        *,
        number: int,
        on_open: Callable[[OpenBroker | None], None],
    ) -> None:
        self._make = make
        self._elector = elector
        self._number = number
        self._on_open = on_open
        self._inside: OpenBroker | None = None
        self._is_leading = False
        self._epoch = 0

    @property
    def inside(self) -> OpenBroker:
        """What is open."""
        assert self._inside is not None, "it is opened first"
        return self._inside

    @property
    def standing(self) -> Standing:
        """What the broker does now."""
        return Standing(self._number, self._is_leading, self._epoch, written=self.position.epoch)

    @property
    def position(self) -> LogPosition:
        """How far the log is."""
        return self.inside.group.position

    @property
    def link(self) -> MasterContact:
        """The connection to the master that is followed."""
        return self.inside.group.link

    async def open(self, cut_at: int | None = None) -> None:
        """Opens everything as a slave that follows nobody yet.

        Args:
            cut_at: log offset from which on the log is dropped.
        """
        self._inside = self._make()
        self._on_open(self._inside)
        await self._inside.open(is_slave=True, cut_at=cut_at)

    async def close(self) -> None:
        """Closes what is open, without saving."""
        if self._inside is not None:
            await self._inside.close()

    async def lead(self, view: GroupView) -> None:
        """Becomes the master of a view."""
        if self._is_leading:
            await self._reopen()
        began = asyncio.get_running_loop().time()
        await self.inside.promote(view.epoch)
        self._is_leading, self._epoch = True, view.epoch
        logger.warning(
            "member %d is the master of epoch %d after %.3f s; its log ends at %d",
            self._number, view.epoch, asyncio.get_running_loop().time() - began,
            self.position.end,
        )  # fmt: skip

    async def follow(self, view: GroupView) -> None:
        """Follows the master of a view; whoever led before is opened again as a slave."""
        if self._is_leading:
            logger.warning(
                "member %d is not the master any more: member %s is, in epoch %d",
                self._number, view.master, view.epoch,
            )  # fmt: skip
            await self._reopen()
        master = view.members.get(view.master or 0)
        if master is None:
            logger.warning("the elector does not know the address of master %s", view.master)
            return
        logger.warning(
            "member %d follows member %d, the master of epoch %d",
            self._number, master.id, view.epoch,
        )  # fmt: skip
        self._epoch = view.epoch
        await self.inside.follow(master, view.epoch)

    async def mend(self) -> None:
        """Cuts from the log what the master has not, if anything was found. What is opened again
        follows nobody yet."""
        cut_at = self.inside.group.cut_at
        if cut_at is not None:
            logger.warning(
                "the log of member %d is cut at %d: what follows there, up to %d, was never "
                "confirmed, and is not the new master's",
                self._number, cut_at, self.position.end,
            )  # fmt: skip
            await self._reopen(cut_at)

    async def _reopen(self, cut_at: int | None = None) -> None:
        inside = self.inside
        inside.depose()
        self._on_open(None)
        self._is_leading, self._epoch = False, 0
        await inside.save()
        await inside.close()
        await self.open(cut_at)

    async def hand_over(self, deadline: Deadline, to: int | None = None) -> bool:
        """Gives the lead to another member that is in sync, which then has all that was accepted.

        Args:
            to: which one; None for the one that is furthest.

        Returns:
            Whether another one leads now. If not, this one goes on.

        Raises:
            ElectionRefused, ElectorUnavailable: as `Elector.hand_over`.
        """
        view = self._elector.view
        if not self._is_leading or view.master != self._number:
            return False
        chosen = successor(self._candidates(view, to))
        if chosen is None:
            return False
        inside = self.inside
        await inside.retire()
        is_done = False
        try:
            if await inside.group.has_all(chosen.id, deadline):
                view = self._elector.view  # the in-sync set may have changed meanwhile
                view = await self._elector.hand_over(chosen.id, view)
                is_done = view.master != self._number
        finally:
            if not is_done and self._inside is inside and self._is_leading:
                inside.resume()
            else:
                inside.registration.move(self._number, view.epoch)
        return is_done

    def _candidates(self, view: GroupView, to: int | None) -> Iterator[Candidate]:
        ends = self.inside.group.ends()
        for number in view.in_sync - {self._number}:
            member = view.members.get(number)
            if member is None or not member.is_alive or number not in ends:
                continue
            if to in (None, number):
                yield Candidate(number, view.epoch, ends[number], member.priority)
