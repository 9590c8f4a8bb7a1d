"""What the parts of a broker know of its group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.broker.dispatch import Endpoints
from sprocket.election.elector import Elector


class Seat(NamedTuple):
    """The place of one broker in its group.

    Attributes:
        elector: decides who leads.
        number: this broker's number; the master is registered as 0 instead.
        replication_port: where this broker sends its log when it leads.
        lease: for so long a master may lead without a sign of life, s.
        endpoints: requests of other members, by request code.
        on_lost: is called when the connection to the master has ended.
        hand_over: if this broker leads, gives the lead to a member, or to the best one, when that
            has everything that this broker has accepted; False if there is none in time.
    """

    elector: Elector
    number: int
    replication_port: int
    lease: float
    endpoints: Endpoints
    on_lost: Callable[[], None]
    hand_over: Callable[[Deadline, int | None], Awaitable[bool]]
