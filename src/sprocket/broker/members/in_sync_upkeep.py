"""Keeps the in-sync set of a group as it is, as its master."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.deadline import Deadline
from sprocket.base.troubles import Troubles
from sprocket.election.candidacy import SLAVE_SILENT_PART
from sprocket.election.elector import ElectionRefused, Elector, ElectorUnavailable, GroupView
from sprocket.replication.in_sync import InSyncCopies, SyncRules

logger = logging.getLogger(__name__)

#: The copies are looked at so often in a lease.
_ROUNDS = 10


class InSyncUpkeep:
    """The upkeep by one master, in one epoch.

    Args:
        copies: what is known of the members' logs.
        number: this broker's number.
        lease: for so long a master may lead without a sign of life, s.
        behind: seconds without having caught up after which a member leaves the set.
        log_end: the end of this broker's log.
        on_change: is called when other members count than before.
    """

    def __init__(
        self,
        elector: Elector,
        copies: InSyncCopies,
        *,
        number: int,
        lease: float,
        behind: float,
        log_end: Callable[[], int],
        on_change: Callable[[], None],
    ) -> None:
        self._elector = elector
        self._copies = copies
        self._number = number
        self._pause = lease / _ROUNDS
        self._rules = SyncRules(lease * SLAVE_SILENT_PART, behind)
        self._log_end = log_end
        self._on_change = on_change
        #: The version that a change without an answer was based on, and who counts because of it.
        self._unknown: tuple[tuple[int, int, int], frozenset[int]] | None = None
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)

    async def run(self) -> None:
        """Follows the set of the elector's views, and changes it, until cancelled."""
        changes = self._elector.changes
        while True:
            seen = changes.value
            view = self._elector.view
            if view.master == self._number:
                await self._keep(view)
            await changes.reach(seen + 1, Deadline.after(self._pause))

    # A member that enters counts before the elector knows: it may be elected as soon as that does.
    # One that leaves counts until the answer: it may still be elected until then. Without an answer
    # both go on to count, until a view of another version shows what became of the request: only
    # one that was based on the present version can still be granted.
    async def _keep(self, view: GroupView) -> None:
        now = asyncio.get_running_loop().time()
        if self._unknown is not None and self._unknown[0] != _version(view):
            self._unknown = None
        asked = frozenset[int]() if self._unknown is None else self._unknown[1]
        self._count(view.in_sync | asked)
        wanted = self._copies.wanted(now, self._rules, end=self._log_end())
        if wanted == view.in_sync:
            return
        self._count(view.in_sync | asked | wanted)
        shown = self._copies.shown(now, end=self._log_end())
        logger.warning("in sync are members %s now: %s", sorted(wanted), shown)
        try:
            view = await self._elector.set_in_sync(wanted, view)
        except ElectionRefused as error:
            logger.info("the in-sync set is not changed: %s", error)
        except ElectorUnavailable as error:
            self._unknown = (_version(view), asked | wanted)
            self._troubles.failed("set", "the elector does not answer a change of the set", error)
        else:
            self._troubles.ended("set", "the elector answers changes of the set")
            self._count(view.in_sync)

    def _count(self, members: frozenset[int]) -> None:
        members |= {self._number}
        if members != self._copies.members:
            self._copies.members = members
            self._on_change()


def _version(view: GroupView) -> tuple[int, int, int]:
    return view.epoch, view.set_epoch, view.version
