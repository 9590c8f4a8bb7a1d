"""A master and its slaves in a simulated network, each asked through its public door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sprocket.base.deadline import Deadline
from sprocket.broker.config import BrokerConfig
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import SMALL_STORE, Cluster, Machine
from sprocket.testing.network import Network
from tests.broker.parts import Asker


@dataclass
class BrokerGroup:
    """A running group: askers of all brokers, the master's first."""

    cluster: Cluster
    network: Network
    askers: list[Asker]

    @property
    def master(self) -> Machine:
        return self.cluster.brokers[0]

    @property
    def slaves(self) -> list[Machine]:
        return self.cluster.slaves

    async def equal(self, seconds: float = 30.0) -> None:
        """Returns when all running slaves have the master's log."""
        end = self.master.server._store.log_end
        for slave in self.slaves:
            if slave.is_running:
                appended = slave.server._store.replica.appended
                assert await appended.reach(end, Deadline.after(seconds))


@asynccontextmanager
async def group(
    network: Network,
    *,
    slaves: int = 1,
    store: StoreConfig = SMALL_STORE,
    **settings: object,
) -> AsyncIterator[BrokerGroup]:
    """A name server, a master and its slaves, connected to each other."""
    config = BrokerConfig(**settings)  # type: ignore[arg-type]
    cluster = Cluster(network, 1, slaves=slaves, broker=config, store=store)
    await cluster.start()
    await asyncio.sleep(5)
    askers = [Asker(each.server) for each in (*cluster.brokers, *cluster.slaves)]
    yield BrokerGroup(cluster, network, askers)
    for asker in askers:
        await asker.pool.close()
    for machine in cluster.slaves:
        machine.wake()
    await cluster.stop()
