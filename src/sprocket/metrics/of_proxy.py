"""The metrics of a proxy for gRPC clients. Source: ProxyMetricsManager of RocketMQ 5.3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from sprocket.metrics import names
from sprocket.metrics.model import Family

if TYPE_CHECKING:
    from sprocket.proxy.proxy import Proxy

#: RocketMQ's words for a proxy in the process of a broker, and for one before a cluster.
_INSIDE, _APART = "local", "cluster"


class ProxyMetrics:
    """Reads the metrics of a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all values."""
        return {"node_type": "proxy", "node_id": self._proxy.address}

    async def families(self) -> AsyncIterator[Family]:
        """The values now."""
        yield Family(names.PROXY_UP, {(_INSIDE if self._proxy.is_inside else _APART,): 1})
        clients = Family(names.PROXY_CLIENTS)
        for each in self._proxy.clients:
            kind = "true" if each.is_consumer else "false"
            clients.add((each.language.lower(), each.version, kind), 1)
        yield clients
