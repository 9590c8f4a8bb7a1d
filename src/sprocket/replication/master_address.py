"""Where the master of a slave is: as the name servers say, or as it is set."""

from __future__ import annotations

import logging

from sprocket.base.deadline import Deadline
from sprocket.base.watermark import Watermark

logger = logging.getLogger(__name__)


class MasterAddress:
    """The addresses of one master; tasks of a slave wait here until they are known.

    Args:
        replication: where to replicate from, if that is set; the name servers cannot change it.

    Attributes:
        address: where the master answers requests; empty if that is unknown.
        replication: where it sends its log; empty if that is unknown.
        changes: how often either of them has changed, or the master has another epoch.
        term: rises with each `renew`.
    """

    __slots__ = ("_is_set", "address", "changes", "replication", "term")

    def __init__(self, replication: str = "") -> None:
        self._is_set = bool(replication)
        self.address = ""
        self.replication = replication
        self.changes = Watermark(int(self._is_set))
        self.term = 0

    def learn(self, address: str, replication: str) -> None:
        """Records what a name server says; nothing, if it knows no master now."""
        if not address or (address, replication) == (self.address, self.replication):
            return
        if self._is_set and address == self.address:
            return
        self.address = address
        if not self._is_set and replication:
            self.replication = replication
        logger.info("the master is %s, and replicates at %s", address, self.replication)
        self.changes.rise(self.changes.value + 1)

    def came_back(self, address: str, replication: str) -> None:
        """Records what a master says that is back: the slave connects at once, also if it waits
        after many vain tries."""
        before = self.changes.value
        self.learn(address, replication)
        if self.changes.value == before:
            self.renew()

    def renew(self) -> None:
        """Has the slave connect anew at once: the group has another epoch."""
        self.term += 1
        self.changes.rise(self.changes.value + 1)

    async def known(self) -> str:
        """The address to replicate from, once it is known."""
        while not self.replication:
            await self.changes.reach(self.changes.value + 1, Deadline.never())
        return self.replication
