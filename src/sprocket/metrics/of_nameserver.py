"""The metrics of a name server. RocketMQ's has none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from sprocket.metrics import names
from sprocket.metrics.model import Family

if TYPE_CHECKING:
    from sprocket.nameserver.nameserver import NameServer


class NameServerMetrics:
    """Reads the metrics of a name server."""

    def __init__(self, nameserver: NameServer) -> None:
        self._nameserver = nameserver

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all values."""
        return {"node_type": "nameserver", "node_id": self._nameserver.address}

    async def families(self) -> AsyncIterator[Family]:
        """The values now."""
        routes = self._nameserver.routes
        yield Family.single(names.ROUTED_TOPICS, routes.topic_count)
        brokers = Family(names.BROKERS, {("true",): 0, ("false",): 0})
        for instance in routes.instances():
            brokers.add(("false" if instance.number else "true",), 1)
        yield brokers
