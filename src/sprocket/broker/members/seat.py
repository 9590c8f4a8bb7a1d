"""What the parts of a broker know of its group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
    """

    elector: Elector
    number: int
    replication_port: int
    lease: float
    endpoints: Endpoints
    on_lost: Callable[[], None]
