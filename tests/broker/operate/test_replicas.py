"""The state of replication."""

from __future__ import annotations

from sprocket.protocol.bodies import ReplicaStateBody
from sprocket.protocol.requests.election import (
    ExchangeReplicaAddress,
    ExchangeReplicaAddressReply,
)
from sprocket.protocol.requests.replica import ReplicaState
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import group


def test_master_and_slave_say_how_far_they_are() -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=2) as running:
            master, slave, _ = running.askers
            await master.create("T")
            await master.send("T")
            await running.equal()
            end = running.master.server._store.log_end
            # a report is on its way back
            await master.create("U")
            state = ReplicaStateBody.decode((await master.call(ReplicaState())).body)
            assert (state.master, state.master_commit_log_max_offset) == (True, end)
            assert state.in_sync_slave_nums == 2
            assert {each.slave_ack_offset for each in state.ha_connection_info} == {end}
            assert {each.diff for each in state.ha_connection_info} == {0}
            state = ReplicaStateBody.decode((await slave.call(ReplicaState())).body)
            assert not state.master
            mine = state.ha_client_runtime_info
            assert mine is not None
            assert (mine.activated, mine.max_offset) == (True, end)
            now_ms = slave.broker._world.clock.now_ms()
            assert now_ms - 5_000 <= mine.last_read_timestamp <= now_ms
            assert now_ms - 5_000 <= mine.last_write_timestamp <= now_ms
            assert mine.master_addr == f"{running.master.address}:10912"

    simulate(main)


def test_a_master_says_where_slaves_connect_to_and_a_slave_does_not() -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=1) as running:
            master, slave = running.askers
            await master.create("T")
            reply = await master.call(ExchangeReplicaAddress())
            found = reply.read(ExchangeReplicaAddressReply)
            assert found.master_ha_address == f"{running.master.address}:10912"
            assert found.master_address == f"{running.master.address}:10911"
            assert found.master_flush_offset == 0
            reply = await slave.call(ExchangeReplicaAddress())
            assert reply.read(ExchangeReplicaAddressReply) == ExchangeReplicaAddressReply()

    simulate(main)
