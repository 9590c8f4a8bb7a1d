"""Compares a slave's log with its master's before anything is copied, as far as that is possible.

The stream has no names and no checksums: a slave with the log of another broker, or with messages
that its master has lost, would go on silently. So the slave asks the master, as an operator could,
where its log begins and ends, and for the record that is the newest of its own.
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.base.errors import OffsetOutOfRange, SprocketError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.query import ViewMessage
from sprocket.remoting.pool import Pool
from sprocket.replication.master_address import MasterAddress
from sprocket.store.store import Store

#: How long the master may take for both answers, s.
_ASK_SECONDS = 5.0


class LogComparison:
    """Compares a store with its master's.

    Args:
        pool: connections to the master.
    """

    def __init__(self, store: Store, master: MasterAddress, pool: Pool) -> None:
        self._store = store
        self._master = master
        self._pool = pool

    async def difference(self) -> str | None:
        """Why this log is not the beginning of the master's; None if none is known.

        A master that does not answer, or whose address is unknown, gives no reason.
        """
        end, newest = self._store.log_end, self._store.replica.newest()
        if not end or not self._master.address:
            return None
        try:
            return await self._compare(end, newest)
        except (SprocketError, ValueError):
            return None

    async def _compare(self, end: int, newest: int) -> str | None:
        deadline = Deadline.after(_ASK_SECONDS)
        ask = self._pool.ask
        reply = await ask(self._master.address, BrokerState(), deadline=deadline)
        figures = KvTable.decode(reply.body).table
        first, last = (int(figures[key]) for key in ("commitLogMinOffset", "commitLogMaxOffset"))
        if end > last:
            return (
                f"its log ends at {last}, before this one, which ends at {end}: this log has "
                "messages that the master has not. Compare both; if the master is right, empty "
                "this broker's folder, so that it copies anew"
            )
        if newest < first:
            return None
        reply = await ask(self._master.address, ViewMessage(offset=newest), deadline=deadline)
        try:
            is_same = bytes(self._store.lookup(newest)) == bytes(reply.body)
        except OffsetOutOfRange:  # deleted meanwhile
            return None
        if is_same:
            return None
        return (
            f"at log offset {newest} it has another message than this log: they are logs of "
            "different brokers, or have grown apart. Compare both; if the master is right, empty "
            "this broker's folder, so that it copies anew"
        )
