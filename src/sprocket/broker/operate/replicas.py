"""The state of replication (code 907), as `mqadmin haStatus` shows it.

Source: AdminBrokerProcessor.getBrokerHaStatus, DefaultHAService.getRuntimeInfo of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.replication import Replication
from sprocket.protocol.bodies import ReplicaStateBody, SlaveSideState, SlaveState
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store


class ReplicaRequests:
    """Shows how far slaves are."""

    def __init__(self, store: Store, replication: Replication) -> None:
        self._store = store
        self._replication = replication

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.GET_BROKER_HA_STATUS: self.state}

    def state(self, command: Command, peer: Peer) -> Reply:
        """What a master knows of its slaves, or a slave of its master."""
        end = self._store.log_end
        if self._replication.is_slave:
            mine = SlaveSideState(
                activated=self._replication.slave is not None
                and self._replication.slave.is_connected,
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
