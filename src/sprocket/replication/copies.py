"""How many copies of the log there are up to which offset: decided from slaves' reports. Pure.

A report is 8 bytes from anybody who can connect. So it counts only if its sender is known to be a
slave, and never beyond the master's own end. A slave is known by its host, since the stream has no
names: the name servers say how many slaves of this broker are registered at which host. As long as
they have said nothing, every host counts as one slave.

Two links may belong to one slave, when it has connected again and the old link is not closed yet.
So of the links from a host only as many count as there are slaves, and of those the ones that are
least far: that many slaves have at least so much, whatever link belongs to whom.

RocketMQ counts each link as a copy, and 5.x believes any report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class CopyRules(NamedTuple):
    """How many copies a message needs.

    Attributes:
        wanted: copies in all, the master's included, before a send is answered; 1: no slave's.
        least: with fewer copies in sync, no message is accepted; and readers see what so many have.
        gap_bytes: a slave that has reported and is less than this behind is in sync.
        follows_sync: whether only as many copies are wanted as are in sync, but not fewer than the
            least.
    """

    wanted: int = 1
    least: int = 1
    gap_bytes: int = 256 << 20
    follows_sync: bool = False


class _LinkPosition(NamedTuple):
    host: str
    offset: int


class Copies:
    """What is known of the copies of one master's log.

    Attributes:
        rules: how many are needed.
        registered: how many slaves are registered at each host; None if nothing is known.
    """

    __slots__ = ("_links", "registered", "rules")

    def __init__(self, rules: CopyRules) -> None:
        self.rules = rules
        self._links: dict[int, _LinkPosition] = {}
        self.registered: Mapping[str, int] | None = None

    def change(self, rules: CopyRules) -> None:
        """Changes how many copies are needed."""
        self.rules = rules

    def report(self, link: int, host: str, offset: int) -> None:
        """Records what a link reports. A slave's log never becomes shorter while it is connected,
        so a lower number than before changes nothing.

        Args:
            link: a number of the connection.
            host: the address that it comes from.
        """
        known = self._links.get(link)
        if known is None or offset > known.offset:
            self._links[link] = _LinkPosition(host, offset)

    def forget(self, link: int) -> None:
        """Drops a link that is closed."""
        self._links.pop(link, None)

    def know(self, registered: Mapping[str, int] | None, connected: Collection[str]) -> None:
        """Records how many slaves are registered at each host; None if that cannot be known.

        A connected slave that was registered stays known: a name server that was just started
        learns of it only at its next registration.

        Args:
            connected: hosts that have connections.
        """
        before = self.registered
        if registered is not None and before:
            live = before.keys() & set(connected)
            kept = {host: max(before[host], registered.get(host, 0)) for host in live}
            registered = {**registered, **kept}
        self.registered = registered

    def is_known(self, host: str) -> bool:
        """Whether reports from a host count."""
        return self.registered is None or host in self.registered

    def offsets(self) -> list[int]:
        """Log offsets up to which slaves have the log: one for each that counts, highest first."""
        by_host: dict[str, list[int]] = {}
        for host, offset in self._links.values():
            by_host.setdefault(host, []).append(offset)
        found = []
        for host, offsets in by_host.items():
            count = 1 if self.registered is None else self.registered.get(host, 0)
            found += sorted(offsets)[:count]
        return sorted(found, reverse=True)

    def in_sync(self, end: int) -> int:
        """How many copies are in sync, the master's included.

        Args:
            end: the end of the master's log.
        """
        return 1 + sum(end - offset < self.rules.gap_bytes for offset in self.offsets())

    def wanted(self, end: int) -> int:
        """How many copies a message needs now before its send is answered.

        Args:
            end: the end of the master's log.
        """
        rules = self.rules
        if not rules.follows_sync:
            return rules.wanted
        return max(min(rules.wanted, self.in_sync(end)), rules.least)

    def is_enough(self, end: int) -> bool:
        """Whether enough copies are in sync to accept a message.

        Args:
            end: the end of the master's log.
        """
        return self.in_sync(end) >= self.rules.least

    def replicated(self, count: int, end: int) -> int:
        """The log offset up to which there are so many copies; 0 if there are too few.

        Args:
            count: copies, the master's included.
            end: the end of the master's log, which no copy exceeds.
        """
        if count <= 1:
            return end
        offsets = self.offsets()
        return min(offsets[count - 2], end) if count - 2 < len(offsets) else 0
