"""Follows who leads the group of this broker, changes its role, and replaces a master that is lost.

One loop takes one view of the elector after the other, and acts on it to the end before it takes
the next: so the roles of one broker never overlap. What it decides is in `election.candidacy`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.base.troubles import Troubles
from sprocket.broker.dispatch import Endpoints
from sprocket.election.candidacy import (
    Candidate,
    Choice,
    Course,
    Signs,
    Standing,
    choice,
    course,
    may_lead,
)
from sprocket.election.elector import (
    ElectionRefused,
    Elector,
    ElectorUnavailable,
    GroupView,
    LogPosition,
    Member,
)
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.replica import MemberState, MemberStateReply
from sprocket.remoting import address as addresses
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: How long another member may take to answer; whoever does not is not waited for, s.
_ASK_SECONDS = 0.15
#: The state of the master is looked at so often in a lease.
_ROUNDS = 10
#: A new master has this part of a lease until it listens for slaves.
_BEGIN_PART = 0.4
#: Part of a lease after which a connection that is not made shows nothing.
_PROBE_PART = 0.2


class MasterContact(NamedTuple):
    """The connection of a slave to its master.

    Attributes:
        address: where the log is copied from.
        is_open: whether there is a connection.
        has_begun: whether there ever was one to this master.
        heard_at: when something last came from this master, or it was first followed, by the loop's
            time.
    """

    address: str
    is_open: bool
    has_begun: bool
    heard_at: float


class Roles(Protocol):
    """What changes the role of a broker.

    Attributes:
        standing: what the broker does now.
        position: how far its log is.
        link: the connection to the master that it follows.
    """

    @property
    def standing(self) -> Standing: ...

    @property
    def position(self) -> LogPosition: ...

    @property
    def link(self) -> MasterContact: ...

    async def lead(self, view: GroupView) -> None:
        """Becomes the master of a view."""
        ...

    async def follow(self, view: GroupView) -> None:
        """Follows the master of a view."""
        ...

    async def mend(self) -> None:
        """Cuts from the log what the master has not, if anything was found."""
        ...


class Leadership:
    """The part of one member of a group.

    Args:
        pool: connections to the other members.
        number: this broker's number.
        lease: for so long a master may lead without a sign of life, s.
        is_unclean: whether this broker may lead without being in sync, if none that is lives.
    """

    def __init__(
        self,
        elector: Elector,
        roles: Roles,
        *,
        pool: Pool,
        number: int,
        lease: float,
        is_unclean: bool,
    ) -> None:
        self._elector = elector
        self._roles = roles
        self._pool = pool
        self._number = number
        self._lease = lease
        self._is_unclean = is_unclean
        self._woken = asyncio.Event()
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)
        #: Silence before this time says nothing of the master: this process stood still.
        self._awake_since = 0.0
        #: The view in which a master is sought, and since when.
        self._sought: tuple[GroupView, float] | None = None

    def endpoints(self) -> Endpoints:
        """Requests of other members, by request code."""
        return {OwnRequestCode.MEMBER_STATE: self.state}

    def state(self, command: Command, peer: Peer) -> Reply:
        """How far this member's log is, and whether it hears the master."""
        position, standing = self._roles.position, self._roles.standing
        hears = standing.is_leading or (
            standing.epoch > 0 and not self._signs(is_refused=False).is_lost(self._lease)
        )
        return Reply(
            MemberStateReply(
                broker_id=self._number,
                epoch=position.epoch,
                end=position.end,
                hears_master=hears,
            )
        )

    def wake(self) -> None:
        """Has the state of the master looked at now: its connection has ended."""
        self._woken.set()

    async def run(self) -> None:
        """Follows the elector's views until cancelled.

        Raises:
            StoreError, UsageError: the broker cannot be opened in its new role.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._wake_at_changes())
            while True:
                await self._step()
                await self._pause()

    async def _wake_at_changes(self) -> None:
        changes = self._elector.changes
        while True:
            await changes.reach(changes.value + 1, Deadline.never())
            self._woken.set()

    async def _pause(self) -> None:
        loop, pause = asyncio.get_running_loop(), self._lease / _ROUNDS
        began = loop.time()
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        if loop.time() - began > 2 * pause:
            self._awake_since = loop.time()

    async def _step(self) -> None:
        view, roles = self._elector.view, self._roles
        self._elector.report(roles.position)
        match course(view, roles.standing, resumes=not self._elector.is_deciding):
            case Course.LEAD:
                await roles.lead(view)
            case Course.FOLLOW:
                await roles.follow(view)
            case Course.SEEK:
                await self._seek(view, is_ended=True)
            case Course.GO_ON if not roles.standing.is_leading:
                await roles.mend()
                await self._watch_master(view)

    async def _watch_master(self, view: GroupView) -> None:
        """Seeks another master if the one that is followed is lost."""
        master = view.members.get(view.master or 0)
        if master is None:
            return
        if self._roles.link.address != master.replication_address:
            await self._roles.follow(view)  # it was started again at another address
        if not self._elector.is_deciding:
            return
        is_refused = await self._is_ended(master)
        signs = self._signs(is_refused=is_refused)
        if signs.is_lost(self._lease):
            await self._seek(view, is_ended=signs.is_ended)
        else:
            self._sought = None

    def _signs(self, *, is_refused: bool) -> Signs:
        since = max(self._roles.link.heard_at, self._awake_since)
        return Signs(is_refused, asyncio.get_running_loop().time() - since)

    # A member that has just been elected syncs its epoch before it listens. So it has some time for
    # that before a refusal shows that it has ended.
    async def _is_ended(self, master: Member) -> bool:
        """Whether the master's process has ended, as far as can be seen at once."""
        link = self._roles.link
        if link.is_open:
            return False
        followed = asyncio.get_running_loop().time() - link.heard_at
        if not link.has_begun and followed < self._lease * _BEGIN_PART:
            return False
        return await self._refuses(master)

    async def _refuses(self, master: Member) -> bool:
        """Whether the master's host says that nobody listens where it sends its log."""
        host, port = addresses.split(master.replication_address)
        try:
            async with asyncio.timeout(self._lease * _PROBE_PART):
                _, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        writer.transport.abort()
        return False

    async def _seek(self, view: GroupView, *, is_ended: bool) -> None:
        """Claims to lead, unless another member should, or hears the master."""
        if not may_lead(view, self._number, is_unclean=self._is_unclean):
            return
        now = asyncio.get_running_loop().time()
        if self._sought is None or self._sought[0] != view:
            self._sought = (view, now)
        others = await self._ask(view)
        position = self._roles.position
        priority = view.members[self._number].priority if self._number in view.members else 0
        made = choice(
            Candidate(self._number, position.epoch, position.end, priority),
            others,
            is_ended=is_ended,
            waited=now - self._sought[1],
            lease=self._lease,
        )
        if made is not Choice.CLAIM:
            logger.info("the master of epoch %d seems lost: %s", view.epoch, made.value)
        elif self._elector.view == view:
            await self._claim(view)

    async def _claim(self, view: GroupView) -> None:
        logger.info("member %d claims to lead after epoch %d", self._number, view.epoch)
        try:
            await self._elector.claim(view)
        except ElectionRefused as error:
            self._troubles.failed("claim", "a claim to lead is refused", error)
        except ElectorUnavailable as error:
            self._troubles.failed("claim", "the elector does not answer a claim", error)
        else:
            self._troubles.ended("claim", "claims to lead are answered")
            self._woken.set()

    async def _ask(self, view: GroupView) -> Sequence[Candidate]:
        """What the other members answer that may lead."""
        asked = [
            each
            for each in view.members.values()
            if each.id not in (self._number, view.master)
            and may_lead(view, each.id, is_unclean=self._is_unclean)
        ]
        answers = await asyncio.gather(*map(self._state_of, asked))
        return [each for each in answers if each is not None]

    # Whoever cannot answer does not object: a claim is safe whatever others would have said.
    async def _state_of(self, member: Member) -> Candidate | None:
        deadline = Deadline.after(_ASK_SECONDS)
        try:
            reply = await self._pool.ask(member.address, MemberState(), deadline=deadline)
            state = reply.read(MemberStateReply)
        except SprocketError as error:
            logger.info("member %d does not answer: %s", member.id, error)
            return None
        return Candidate(
            member.id, state.epoch, state.end, member.priority, hears=state.hears_master
        )
