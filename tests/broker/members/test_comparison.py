"""A slave's log against its master's; what is found is tested with replication, in
`test_replication`."""

from __future__ import annotations

import asyncio

from sprocket.broker.members.comparison import LogComparison
from sprocket.remoting.pool import Pool
from sprocket.replication.master_address import MasterAddress
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.groups import group
from tests.store.making import a_draft, opened


def test_a_master_that_does_not_answer_gives_no_reason() -> None:
    async def main(_: object) -> None:
        store = await opened(MemoryDisk())
        store.append(a_draft())
        master = MasterAddress("127.0.0.1:2")
        async with Pool() as pool:
            comparison = LogComparison(store, master, pool)
            assert await comparison.difference() is None
            master.learn("127.0.0.1:1", "")
            assert await comparison.difference() is None

    simulate(main)


def test_another_brokers_log_is_told_from_ones_own() -> None:
    async def main(network: object) -> None:
        async with group(network) as running:  # type: ignore[arg-type]
            await running.askers[0].create("T")
            await running.askers[0].send("T")
            await running.equal()
            master = MasterAddress()
            master.learn(running.askers[0].broker.address, "127.0.0.1:2")
            for machine, is_same in ((running.slaves[0], True), (None, False)):
                store = await opened(MemoryDisk()) if machine is None else machine.server._store
                if machine is None:
                    store.append(a_draft(b"x", properties=b""))
                comparison = LogComparison(store, master, running.askers[0].pool)
                assert (await comparison.difference() is None) is is_same
            await asyncio.sleep(0)

    simulate(main)
