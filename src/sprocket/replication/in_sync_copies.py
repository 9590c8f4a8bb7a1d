"""How much of a log the in-sync set of a group has: decided from its members' reports. Pure.

A message is safe when all members of the set have it. The set is changed elsewhere, by
compare-and-set; while it is unknown whether a change was made, the members of both sets count.

A member that has not reported in this epoch is taken to have what was confirmed when the epoch
began, and no more.

Source: AutoSwitchHAService of RocketMQ 5.3 (computeConfirmOffset, maybeExpandInSyncStateSet), where
a member of the set that has no connection stops the confirmed offset, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.replication.copies import CopyRules


@dataclass(slots=True)
class MemberProgress:
    """How far one member of a group is, as its master knows it. Times are those of the loop.

    Attributes:
        report: log offset up to which it has the log; -1 if it has not reported in this epoch.
        caught_up_at: when it last had everything that the master had; None if it never had.
        heard_at: when it last reported; None if it has not.
        is_connected: whether it has a connection now.
        goal, goal_at: where the master's log ended at an earlier report, and when: whoever has that
            had everything then. Under load a report is always behind the end of that moment.
    """

    report: int = -1
    caught_up_at: float | None = None
    heard_at: float | None = None
    is_connected: bool = False
    goal: int = 0
    goal_at: float | None = None


class InSyncCopies:
    """What is known of the copies of a master's log in one epoch.

    Args:
        own: the master's number in the group; also an attribute.
        rules: `least`: with fewer members in the set, no message is accepted.
        confirmed: the confirmed offset when the epoch began, as far as it is known.
        epoch_start: log offset where the epoch begins.

    Attributes:
        in_sync: the in-sync set, as it was last set.
        members: how far each member is that has connected in this epoch.
    """

    __slots__ = (
        "_changing", "_confirmed", "_epoch_start", "_links", "_set_epoch", "in_sync",
        "members", "own", "rules",
    )  # fmt: skip

    def __init__(
        self, own: int, rules: CopyRules, *, confirmed: int = 0, epoch_start: int = 0
    ) -> None:
        self.rules = rules
        self.own = own
        self._confirmed = confirmed
        self._epoch_start = epoch_start
        self._set_epoch = -1
        self._changing: frozenset[int] = frozenset()
        #: The newest connection of each member.
        self._links: dict[int, int] = {}
        self.in_sync: frozenset[int] = frozenset({own})
        self.members: dict[int, MemberProgress] = {}

    def change(self, rules: CopyRules) -> None:
        """Changes how many members are needed."""
        self.rules = rules

    def propose(self, members: frozenset[int]) -> None:
        """Records that a change of the set was asked for: both sets count until `set_in_sync`."""
        self._changing = self._changing | members

    def set_in_sync(self, members: frozenset[int], set_epoch: int) -> None:
        """Records the set as the elector says it is; an older one than is known changes nothing.

        Args:
            set_epoch: the version of the set.
        """
        if set_epoch >= self._set_epoch:
            self._set_epoch = set_epoch
            self.in_sync, self._changing = members, frozenset()

    def report(self, link: int, member: int, offset: int, *, end: int, now: float) -> None:
        """Records what a member reports on a connection; its newest connection counts.

        Args:
            link: a number of the connection, which rises.
            end: the end of the master's log now.
            now: time of the loop.
        """
        if link < self._links.get(member, -1):
            return
        self._links[member] = link
        known = self.members.setdefault(member, MemberProgress())
        known.report, known.heard_at, known.is_connected = offset, now, True
        if offset >= end:
            known.caught_up_at = now
        elif offset < known.goal:
            return
        elif known.goal_at is not None:
            known.caught_up_at = known.goal_at
        known.goal, known.goal_at = end, now

    def forget(self, link: int) -> None:
        """Drops a connection that is closed; what its member reported stays true."""
        for member, newest in self._links.items():
            if newest == link:
                self.members[member].is_connected = False

    def behind(self, member: int, end: int) -> int:
        """How many bytes of the log a member lacks.

        Args:
            end: the end of the master's log.
        """
        return max(end - self._position(member, end), 0)

    def may_enter(self, member: int, end: int) -> bool:
        """Whether a member is connected and has all that is confirmed, and all that was there
        before this epoch.

        Args:
            end: the end of the master's log.
        """
        known = self.members.get(member)
        if known is None or not known.is_connected:
            return False
        return known.report >= max(self.readable(end), self._epoch_start)

    def is_enough(self, end: int) -> bool:
        """Whether the set has enough members to accept a message."""
        return len(self.in_sync) >= self.rules.least

    def readable(self, end: int) -> int:
        """The confirmed offset: the log offset up to which all of the set have the log.

        Args:
            end: the end of the master's log, as far as it counts as safe at the master.
        """
        counted = (self.in_sync | self._changing) - {self.own}
        least = min((self._position(each, end) for each in counted), default=end)
        self._confirmed = max(self._confirmed, min(least, end))
        return self._confirmed

    @property
    def is_alone(self) -> bool:
        """Whether the master alone decides what is confirmed."""
        return (self.in_sync | self._changing) <= {self.own}

    def _position(self, member: int, end: int) -> int:
        if member == self.own:
            return end
        known = self.members.get(member)
        return self._confirmed if known is None or known.report < 0 else known.report
