"""Which members of a group are in sync, and what all of them have: decided from reports. Pure.

The in-sync set is changed at the elector, with a comparison, so there is a time in which nobody
here knows whether a change was made. Until the answer is there, what counts is right either way: a
member that is about to enter counts from before the request is sent, since it could be elected as
soon as the elector has it; one that is about to leave counts until the answer says that it is out.
Kafka calls this the maximal in-sync replica set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CopyProgress(NamedTuple):
    """How far the copy of one member is, as its master knows.

    Attributes:
        end: the log offset up to which it has the log.
        heard_at: when it last reported, s.
        caught_up_at: when it last had what the master had at the report before, s.
    """

    end: int
    heard_at: float
    caught_up_at: float


class SyncRules(NamedTuple):
    """When a member is in sync.

    Attributes:
        silent: seconds without a report after which it leaves the set.
        behind: seconds without having caught up after which it leaves the set.
    """

    silent: float
    behind: float


class InSyncCopies:
    """The copies of one master's log.

    Args:
        me: the master's number.
        least: with fewer members in the set, no message that waits for copies is accepted.
        epoch_start: where the master's epoch begins: whoever has less has not followed it yet.
        now: when the master began to lead, s.

    Attributes:
        members: those that count now, the master included.
    """

    def __init__(self, me: int, *, least: int, epoch_start: int, now: float) -> None:
        self._began = now
        self._me = me
        self._least = least
        self._epoch_start = epoch_start
        self.members = frozenset({me})
        self._known: dict[int, CopyProgress] = {}
        #: By member, where the master's log ended at the last report.
        self._asked: dict[int, int] = {}

    def report(self, member: int, offset: int, *, end: int, now: float) -> None:
        """Records what a member reports.

        Args:
            end: the end of the master's log.
        """
        known = self._known.get(member)
        has_caught_up = offset >= self._asked.get(member, end)
        at = now if has_caught_up or known is None else known.caught_up_at
        self._known[member] = CopyProgress(offset, now, at)
        self._asked[member] = end

    def ends(self) -> Mapping[int, int]:
        """The log offsets up to which members have the log."""
        return {member: each.end for member, each in self._known.items()}

    def confirmed(self, end: int) -> int:
        """The log offset up to which all members that count have the log.

        Args:
            end: the end of the master's log.
        """
        ends = (self._end_of(member) for member in self.members if member != self._me)
        return min(ends, default=end)

    def is_enough(self) -> bool:
        """Whether the set is large enough for messages that wait for it."""
        return len(self.members) >= self._least

    def wanted(self, now: float, rules: SyncRules, *, end: int) -> frozenset[int]:
        """The set as it should be.

        A member enters that has all that is confirmed and follows the master's epoch.

        Args:
            end: the end of the master's log.
        """
        confirmed = self.confirmed(end)
        found = {self._me}
        if now - self._began < rules.silent:  # others may not have connected yet
            found |= self.members - self._known.keys()
        for member, each in self._known.items():
            if now - each.heard_at >= rules.silent or now - each.caught_up_at >= rules.behind:
                continue
            if member in self.members or each.end >= max(confirmed, self._epoch_start):
                found.add(member)
        return frozenset(found)

    def shown(self, now: float, *, end: int) -> str:
        """How far each member is, for a log line."""
        found = [
            f"{member} is {end - each.end} bytes behind, heard {now - each.heard_at:.1f} s ago"
            for member, each in sorted(self._known.items())
        ]
        return ", ".join(found) or "no other has reported"

    def _end_of(self, member: int) -> int:
        known = self._known.get(member)
        return 0 if known is None else known.end
