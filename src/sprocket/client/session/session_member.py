"""A member of a consumer group, as its session sees it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sprocket.protocol.bodies import ConsumerData


class SessionMember(Protocol):
    """A member of a consumer group, as its session sees it."""

    @property
    def group(self) -> str:
        """The group's name."""
        ...

    def describe(self) -> ConsumerData:
        """Returns what heartbeats contain about this member."""
        ...

    def lost(self, brokers: Collection[str]) -> None:
        """Is called when the connection to the master of brokers breaks, or when they have another
        master: other members may get its leases."""
        ...

    def rebalance_soon(self) -> None:
        """Is called when the group's members or a route have changed: a rebalance is due."""
        ...
