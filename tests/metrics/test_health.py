"""What a broker tells about its health, in simulated clusters."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sprocket.base.errors import DiskFull
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.metrics import names
from sprocket.metrics.health import BrokerHealth, Health, State, worst
from sprocket.metrics.of_broker import BrokerMetrics
from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


def health_of(machine: Machine) -> Health:
    broker = machine.server
    assert isinstance(broker, Broker)
    return BrokerHealth(broker)()


def test_a_master_without_its_slave_is_not_in_sync_and_a_slave_alone_neither() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network, "health", slaves=1, broker=BrokerConfig(role="SYNC_MASTER"))
        await cluster.start()
        master, slave = (each for each in cluster.machines if isinstance(each.server, Broker))
        await asyncio.sleep(10)
        assert health_of(master) == Health(State.SERVING)
        assert health_of(slave) == Health(State.READ_ONLY, "it is a slave")
        metrics = BrokerMetrics(master.server)
        replicas = [
            family.points
            async for family in metrics.families()
            if family.metric is names.REPLICA_LAG
        ]
        assert [list(points.values()) for points in replicas] == [[0]]
        slave.kill()
        await asyncio.sleep(1)
        lost = health_of(master)
        assert lost.state is State.NOT_IN_SYNC
        assert "in-sync replicas not enough: 1 of the 2 copies" in lost.why
        await slave.start()
        await asyncio.sleep(10)
        assert health_of(master).is_ready
        master.kill()
        await asyncio.sleep(30)
        assert health_of(slave).state is State.NOT_IN_SYNC
        slave.kill()

    simulate(main)


def test_a_broker_tells_a_full_disk_a_lack_of_permission_and_its_end() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network, "health")
        await cluster.start()
        (machine,) = (each for each in cluster.machines if isinstance(each.server, Broker))
        broker = machine.server
        flags = broker.inside.store.flags
        flags.fill(DiskFull("the disk is full"))
        assert health_of(machine) == Health(State.FULL, "the disk is full")
        flags.free()
        broker.settings.config = replace(broker.settings.config, permission=4)
        assert health_of(machine).state is State.READ_ONLY
        broker.settings.config = replace(broker.settings.config, permission=6)
        assert health_of(machine) == Health(State.SERVING)
        broker.inside.dispatch = None
        assert health_of(machine).state is State.STARTING
        assert [family async for family in BrokerMetrics(broker).families()] == []
        machine.kill()

    simulate(main)


def test_the_worst_of_several_counts() -> None:
    well, full = Health(State.SERVING), Health(State.FULL, "full")
    late, failed = Health(State.NOT_IN_SYNC, "late"), Health(State.FAILED, "broken")
    assert worst({}).state is State.STARTING
    assert worst({"a": well, "b": well}) == well
    assert worst({"a": late, "b": full}) == late
    assert worst({"a": late, "b": failed, "c": well}) == failed
