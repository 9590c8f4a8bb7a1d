"""Bodies about the brokers of one name, as Sprocket's brokers show them to operators."""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long


class GroupMemberFacts(Body):
    """A member of a group, as its elector knows it."""

    address: str = always("")
    alive: bool = always(True)
    number: Long = always(0)
    priority: Long = always(0)
    replication_address: str = always("")


class GroupStateBody(Body):
    """Reply body of `GroupStateOf` and `HandOver`: a broker, and its group as it sees it.

    Attributes:
        confirmed: log offset up to which readers see this broker's log.
        elector: who decides; None if nobody does: then all but this broker's own state is empty.
        epoch: of the master; 0 without one.
        in_sync: numbers of the members that have everything that was acknowledged.
        last_stored_ms: when the last record was stored, ms since 1970 UTC; 0 if there is none.
        master: the number of the master; 0 without one.
        number: this broker's number in the group, or the one that is set.
        slave: whether this broker is one.
    """

    cluster: str = always("")
    broker: str = always("")
    confirmed: Long = always(0)
    elector: str | None = None
    epoch: Long = always(0)
    in_sync: list[Long] = always([])
    last_stored_ms: Long = always(0)
    log_end: Long = always(0)
    master: Long = always(0)
    members: list[GroupMemberFacts] = always([])
    number: Long = always(0)
    set_epoch: Long = always(0)
    slave: bool = always(False)
