"""The port through which the brokers of a group learn who leads, and change it.

A *group* is the brokers that share a name. At any time at most one of them is its *master*. Each
master has an *epoch*, a number that is higher than that of every master before. The *in-sync set*
is those members that have everything that was acknowledged: with a synchronous master a message is
acknowledged when all of them have it. So a member of the set that follows a new master keeps the
old one from acknowledging anything, because that one cannot change the set in the new epoch.

Everything that changes is compared with what was seen before: a change that is based on an old view
is refused. So two masters of one epoch are impossible, whatever clocks and networks do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from sprocket.base.errors import SprocketError
from sprocket.base.watermark import Watermark
from sprocket.remoting.endpoints import Endpoint


class ElectionRefused(SprocketError):
    """A change is refused: the group has changed since, or its rules forbid it."""


class ElectorUnavailable(SprocketError):
    """The elector does not answer; whether a change was made is unknown."""


class Member(NamedTuple):
    """One broker of a group.

    Attributes:
        id: its number in the group, from 1 on; it keeps it for ever.
        address, replication_address: `host:port` for clients, and for its copies.
        is_alive: whether it is connected to the elector, as far as that knows.
        priority: of several that could lead, the lowest number leads.
    """

    id: int
    address: str
    replication_address: str
    is_alive: bool = True
    priority: int = 0


class GroupView(NamedTuple):
    """What an elector says about a group.

    Attributes:
        epoch: the epoch of the newest master; 0: there never was one.
        master: the number of the newest master; None if the elector says that there is none now.
            An elector with `is_deciding` keeps naming a master that is lost until another member
            claims; `members[master].is_alive` tells whether it still shows that it lives.
        in_sync: numbers of the members that have everything that was acknowledged.
        set_epoch: the version of `in_sync`, which rises with each change.
        members: all known members by number.
        version: for electors that compare something else than both epochs.
    """

    epoch: int = 0
    master: int | None = None
    in_sync: frozenset[int] = frozenset()
    set_epoch: int = 0
    members: Mapping[int, Member] = {}
    version: int = 0


class LogPosition(NamedTuple):
    """How far the log of a member is.

    Attributes:
        epoch: of its last record.
        end: log offset after its last record.
        confirmed: log offset up to which all of the in-sync set have it, as far as it knows.
    """

    epoch: int = 0
    end: int = 0
    confirmed: int = 0


class Elector(Protocol):
    """Decides for one broker's group. One object serves one broker, on its event loop.

    Attributes:
        view: what is known of the group now.
        changes: rises with each new view.
        is_deciding: whether members propose themselves (`claim`) when the master seems lost; False
            if the elector itself watches over masters, and `claim` is needed only without one.
    """

    view: GroupView
    changes: Watermark
    is_deciding: bool

    @property
    def writes_until(self) -> float:
        """The time of the loop until which this broker may accept messages, if it is the master.

        It is counted from the moment before the request was sent that prolonged it.
        """
        ...

    async def join(self, address: str, replication_address: str) -> int:
        """Makes this broker a member, or finds it again, and reads the first view.

        Returns:
            Its number, which is kept in the broker's folder.

        Raises:
            ElectorUnavailable: it does not answer; try again.
            ElectionRefused: the number belongs to another broker.
        """
        ...

    async def run(self) -> None:
        """Shows that this broker lives, prolongs its right to write and follows the view, until
        cancelled. Failures are logged and tried again."""
        ...

    def report(self, position: LogPosition) -> None:
        """Records how far this broker's log is; it goes out with the next sign of life."""
        ...

    async def claim(self, seen: GroupView) -> GroupView:
        """Tries to become the master after the one of a view.

        Returns:
            The new view, in which this broker or another one is the master.

        Raises:
            ElectionRefused: the view is old, or this broker may not lead.
            ElectorUnavailable: it does not answer; the outcome is unknown until the next view.
        """
        ...

    async def set_in_sync(self, members: frozenset[int], seen: GroupView) -> GroupView:
        """Changes the in-sync set, as the master of a view.

        Raises:
            ElectionRefused: the view is old.
            ElectorUnavailable: it does not answer; the outcome is unknown until the next view.
        """
        ...

    async def hand_over(self, to: int, seen: GroupView, *, is_unclean: bool = False) -> GroupView:
        """Makes another member of the in-sync set the master, as the master of a view or for an
        operator. The old master leaves the set until it follows the new one.

        Args:
            to: the number of the new master.
            seen: the view that this is based on.
            is_unclean: whether it may be a member that is not in the set, or seems dead: what it
                does not have is lost then. Only an operator asks for this.

        Raises:
            ElectionRefused: the view is old, or that member may not lead.
            ElectorUnavailable: it does not answer; the outcome is unknown until the next view.
        """
        ...

    async def leave(self) -> None:
        """Says that this broker stops. Its number stays its own. Raises nothing."""
        ...


@runtime_checkable
class CallingElector(Protocol):
    """What an elector has besides that calls its brokers when something has changed."""

    def endpoints(self) -> Mapping[int, Endpoint]:
        """The requests that it sends, by request code."""
        ...
