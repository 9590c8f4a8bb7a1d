"""The state of replication (code 907), as `mqadmin haStatus` shows it.

Source: AdminBrokerProcessor.getBrokerHaStatus, DefaultHAService.getRuntimeInfo of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.deadline import loop_ms
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.replication import Replication
from sprocket.protocol.bodies import ReplicaStateBody, SlaveSideState, SlaveState
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store


class ReplicaRequests:
    """Shows how far slaves are."""

    def __init__(self, store: Store, replication: Replication, clock: Clock) -> None:
        self._store = store
        self._replication = replication
        self._clock = clock

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.GET_BROKER_HA_STATUS: self.state}

    def state(self, command: Command, peer: Peer) -> Reply:
        """What a master knows of its slaves, or a slave of its master."""
        end = self._store.log_end
        if self._replication.is_slave:
            slave = self._replication.slave
            mine = SlaveSideState(
                activated=slave is not None and slave.is_connected,
                last_read_timestamp=0 if slave is None else self._wall_ms(slave.heard_at),
                last_write_timestamp=0 if slave is None else self._wall_ms(slave.reported_at),
                master_addr=self._replication.master.replication or None,
                max_offset=end,
            )
            return Reply(body=ReplicaStateBody(ha_client_runtime_info=mine).encode())
        sender = self._replication.sender
        slaves = [
            SlaveState(
                addr=link.address,
                diff=end - link.reported.value,
                in_sync=self._replication.is_in_sync(link),
                slave_ack_offset=link.reported.value,
                transfer_from_where=link.sent,
            )
            for link in (sender.links.values() if sender is not None else ())
        ]
        body = ReplicaStateBody(
            ha_connection_info=slaves,
            in_sync_slave_nums=sum(each.in_sync for each in slaves),
            master=True,
            master_commit_log_max_offset=end,
        )
        return Reply(body=body.encode())

    def _wall_ms(self, at: float | None) -> int:
        """The wall time of a time of the loop; 0 for none."""
        return 0 if at is None else self._clock.now_ms() - loop_ms() + int(at * 1000)
