"""Bodies about the members of a group: its in-sync set, as the controller has it, and epochs.

Source: SyncStateSet, ElectMasterResponseBody, BrokerReplicasInfo, EpochEntryCache, EpochEntry of
RocketMQ 5.3.3.
"""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.bodies.route import BrokerMemberGroup
from sprocket.protocol.command import Long


class InSyncSetBody(Body):
    """The numbers of the members that are in sync, and the version of this set."""

    sync_state_set: list[Long] = always([])
    sync_state_set_epoch: Long = always(0)


class ElectedBody(Body):
    """Reply body of `ElectMaster`: the in-sync set, and after an election all addresses."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: list[Long] = always([])


class ReplicaIdentity(Body):
    """One member of a group."""

    alive: bool | None = None
    broker_address: str | None = None
    broker_id: Long | None = None
    broker_name: str | None = None


class ReplicaFacts(Body):
    """The members of one group. Source: BrokerReplicasInfo.ReplicasInfo."""

    in_sync_replicas: list[ReplicaIdentity] = always([])
    master_address: str | None = None
    master_broker_id: Long | None = None
    master_epoch: Long | None = None
    not_in_sync_replicas: list[ReplicaIdentity] = always([])
    sync_state_set_epoch: Long | None = None


class ReplicaTable(Body):
    """Reply body of `InSyncSets`: groups by broker name."""

    replicas_info_table: dict[str, ReplicaFacts] = always({})


class EpochEntry(Body):
    """The log offset at which an epoch begins; the end of the last one is Java's largest long."""

    end_offset: Long = always((1 << 63) - 1)
    epoch: Long = always(0)
    start_offset: Long = always(0)


class EpochEntriesBody(Body):
    """Reply body of `EpochEntries`. `broker_id`: as in routes, 0 for a master."""

    broker_id: Long = always(0)
    broker_name: str | None = None
    cluster_name: str | None = None
    epoch_list: list[EpochEntry] = always([])
    max_offset: Long = always(0)
