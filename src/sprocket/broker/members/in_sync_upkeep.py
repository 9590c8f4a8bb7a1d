"""Keeps the in-sync set of a group as it is, as its master.

The set is changed at the elector, with a comparison, so there is a time in which nobody here knows
whether a change was made. Until the answer is there, what counts is right either way: a member that
is about to enter counts from before the request is sent, since it could be elected as soon as the
elector has it; one that is about to leave counts until the answer says that it is out. Kafka calls
this the maximal in-sync replica set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.troubles import Troubles
from sprocket.election.candidacy import SLAVE_SILENT_PART
from sprocket.election.elector import ElectionRefused, Elector, ElectorUnavailable, GroupView
from sprocket.replication.in_sync_copies import InSyncCopies, MemberProgress

logger = logging.getLogger(__name__)

#: The copies are looked at so often in a lease.
_ROUNDS = 10


class SyncRules(NamedTuple):
    """When a member leaves the in-sync set.

    Attributes:
        silent: seconds without a report.
        behind: seconds without having everything that the master had.
    """

    silent: float
    behind: float


def leaves(member: MemberProgress | None, rules: SyncRules, *, began: float, now: float) -> bool:
    """Whether a member leaves the set.

    Args:
        member: None if it has not connected in this epoch.
        began: when the epoch began, s: until a while later others may not have connected yet.
    """
    heard_at = began if member is None or member.heard_at is None else member.heard_at
    caught_up_at = began if member is None or member.caught_up_at is None else member.caught_up_at
    return now - heard_at >= rules.silent or now - caught_up_at >= rules.behind


class InSyncUpkeep:
    """The upkeep by one master, in one epoch.

    Args:
        copies: what is known of the members' logs.
        number: this broker's number.
        lease: for so long a master may lead without a sign of life, s.
        behind_ms: how long a member may be behind, ms.
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
        behind_ms: Callable[[], int],
        log_end: Callable[[], int],
        on_change: Callable[[], None],
    ) -> None:
        self._elector = elector
        self._copies = copies
        self._number = number
        self._lease = lease
        self._behind_ms = behind_ms
        self._log_end = log_end
        self._on_change = on_change
        self._time = asyncio.get_running_loop().time
        self._began = self._time()
        self._set_epoch = -1
        self._troubles = Troubles(self._time, logger)

    async def run(self) -> None:
        """Follows the set of the elector's views, and changes it, until cancelled."""
        changes = self._elector.changes
        while True:
            seen, view = changes.value, self._elector.view
            if view.master == self._number:
                self._show(view)
                await self._keep(view)
            await changes.reach(seen + 1, Deadline.after(self._lease / _ROUNDS))

    async def _keep(self, view: GroupView) -> None:
        wanted = self._wanted(view)
        if wanted == view.in_sync:
            return
        self._copies.propose(wanted)
        self._on_change()
        logger.warning("in sync are members %s now: %s", sorted(wanted), self._shown())
        try:
            view = await self._elector.set_in_sync(wanted, view)
        except ElectionRefused as error:
            logger.info("the in-sync set is not changed: %s", error)
        except ElectorUnavailable as error:
            self._troubles.failed("set", "the elector does not answer a change of the set", error)
        else:
            self._troubles.ended("set", "the elector answers changes of the set")
            self._show(view)

    def _wanted(self, view: GroupView) -> frozenset[int]:
        """The set as it should be."""
        rules = SyncRules(self._lease * SLAVE_SILENT_PART, self._behind_ms() / 1000)
        known, end, now = self._copies.members, self._log_end(), self._time()
        wanted = {self._number}
        for number in view.in_sync | known.keys():
            if leaves(known.get(number), rules, began=self._began, now=now):
                continue
            if number in view.in_sync or self._copies.may_enter(number, end):
                wanted.add(number)
        return frozenset(wanted)

    # Without an answer, what was proposed goes on to count until another version of the set is
    # seen: only a request that was based on the present one can still be granted.
    def _show(self, view: GroupView) -> None:
        """Counts by a view, if its set is another one than counts."""
        if view.set_epoch != self._set_epoch:
            self._set_epoch = view.set_epoch
            self._copies.set_in_sync(view.in_sync | {self._number}, view.set_epoch)
            self._on_change()

    def _shown(self) -> str:
        now, end = self._time(), self._log_end()
        found = [
            f"{number} is {self._copies.behind(number, end)} bytes behind"
            + ("" if each.heard_at is None else f", heard {now - each.heard_at:.1f} s ago")
            for number, each in sorted(self._copies.members.items())
        ]
        return "; ".join(found) or "no other one has reported"
