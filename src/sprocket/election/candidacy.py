"""What a member of a group does about its master: go on, lead, follow, or claim to lead. Pure.

The elector alone decides who leads, so nothing here has to be right for safety. It decides how soon
a lost master is replaced, and that one member claims, the best one, where several could.

A member claims when its master is lost. A master whose connection has ended and whose host refuses
new ones has ended: it is lost at once. One that is only silent may be late, or this member alone
may not hear it; so it must be silent for long, and no other member of the in-sync set may hear it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from sprocket.election.elector import GroupView

#: A silent master is lost after this part of its lease: before it ends, so that the next one is
#: known when it does.
SILENT_PART = 0.7
#: A silent slave leaves the in-sync set after this part: before slaves claim, so that a master that
#: has lost one slave is not replaced.
SLAVE_SILENT_PART = 0.4
#: A member that is not the best candidate leaves the others so much of the lease to claim.
_YIELD_PART = 0.2


class Standing(NamedTuple):
    """What a member does now.

    Attributes:
        id: its number.
        is_leading: whether it accepts messages as the master.
        epoch: the epoch in which it leads, or that of the master that it follows; 0: none.
        written: the newest epoch of its log. A broker that was killed does not go on in an epoch in
            which it led: it may have lost the end of its log, which its slaves have.
    """

    id: int
    is_leading: bool = False
    epoch: int = 0
    written: int = 0


class Course(Enum):
    """What a member does next, by a view."""

    GO_ON = "go on"
    LEAD = "lead"
    FOLLOW = "follow"
    SEEK = "seek a master"


def course(view: GroupView, standing: Standing, *, resumes: bool = False) -> Course:
    """What a member does, by what its elector says.

    Args:
        resumes: whether a broker that was restarted leads again in its old epoch: where the elector
            itself watches over masters, it names the one that is to lead.
    """
    if view.epoch < standing.epoch:
        return Course.GO_ON
    if view.master is None:
        return Course.GO_ON if standing.is_leading else Course.SEEK
    if view.master == standing.id:
        if standing.is_leading and view.epoch == standing.epoch:
            return Course.GO_ON
        is_new = resumes or view.epoch > max(standing.epoch, standing.written)
        return Course.LEAD if is_new else Course.SEEK
    if view.epoch > standing.epoch or standing.is_leading:
        return Course.FOLLOW
    return Course.GO_ON


class Signs(NamedTuple):
    """What a member sees of the master that it follows.

    Attributes:
        is_ended: whether its connection has ended and its host refuses new ones.
        silent: seconds since anything came from it.
    """

    is_ended: bool = False
    silent: float = 0.0

    def is_lost(self, lease: float) -> bool:
        """Whether the master seems lost.

        Args:
            lease: for so long a master may lead without a sign of life, s.
        """
        return self.is_ended or self.silent >= SILENT_PART * lease


class Candidate(NamedTuple):
    """A member that could lead: how far its log is, and how much it is preferred.

    Attributes:
        hears: whether the master that it follows does not seem lost to it.
    """

    id: int
    epoch: int
    end: int
    priority: int = 0
    hears: bool = False

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Of several, the one with the highest rank leads."""
        return (self.epoch, self.end, -self.priority, -self.id)


class Choice(Enum):
    """What a member does that has lost its master."""

    CLAIM = "claim"
    YIELD = "leave it to a better one"
    WAIT = "wait: another member hears the master"


def may_lead(view: GroupView, member: int, *, is_unclean: bool = False) -> bool:
    """Whether a member may lead next: it is in the in-sync set, or there is none yet.

    Args:
        is_unclean: whether any member may, if none of the set lives; messages may be lost then.
    """
    if not view.in_sync or member in view.in_sync:
        return True
    living = {each.id for each in view.members.values() if each.is_alive}
    return is_unclean and not living & (view.in_sync - {view.master})


def choice(
    me: Candidate,
    others: Iterable[Candidate],
    *,
    is_ended: bool,
    waited: float = 0.0,
    lease: float,
) -> Choice:
    """What a member does that has lost its master, after it has asked the others.

    Args:
        others: the members that may lead and have answered.
        is_ended: whether the master has ended: then it does not matter who still hears it.
        waited: how long it has left it to better ones, s.
        lease: for so long a master may lead without a sign of life, s.
    """
    others = list(others)
    if not is_ended and any(each.hears for each in others):
        return Choice.WAIT
    if waited < _YIELD_PART * lease and any(each.rank > me.rank for each in others):
        return Choice.YIELD
    return Choice.CLAIM


def successor(candidates: Iterable[Candidate]) -> Candidate | None:
    """The one to which a master hands over; None if there is none."""
    return max(candidates, key=lambda each: each.rank, default=None)
