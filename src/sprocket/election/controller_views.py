"""What RocketMQ's controller says of a group, as a `GroupView`. Pure.

The controller knows where clients reach a member, not where slaves do. By default that is the next
port, as in RocketMQ; a master is asked for it.

Both numbers of a view rise one by one: the epoch with every election, also if nobody could be
elected; the version of the set with every election that elects and with every change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sprocket.base.errors import ConnectFailed
from sprocket.election.elector import GroupView, Member
from sprocket.protocol.bodies import ReplicaFacts, ReplicaIdentity
from sprocket.protocol.requests.election import ElectMasterReply
from sprocket.remoting import address as addresses

_PORT_MAX = 65535


def beside(address: str) -> str:
    """Where slaves reach a broker, if it is not known: RocketMQ's default, the next port."""
    try:
        host, port = addresses.split(address)
    except ConnectFailed:
        return ""
    return addresses.join(host, min(port + 1, _PORT_MAX))


def view_of(facts: ReplicaFacts, *, me: Member | None, replication: Mapping[str, str]) -> GroupView:
    """The view that a reply to `InSyncSets` gives.

    Args:
        me: this broker, of which more is known.
        replication: addresses for slaves by the brokers' addresses, as far as known.
    """
    members = {}
    for replica in (*facts.in_sync_replicas, *facts.not_in_sync_replicas):
        if replica.broker_id is None:
            continue
        members[replica.broker_id] = _member(replica, replica.broker_id, replication)
    if me is not None and me.id in members:
        members[me.id] = me._replace(is_alive=members[me.id].is_alive)
    in_sync = (each.broker_id for each in facts.in_sync_replicas)
    return GroupView(
        epoch=facts.master_epoch or 0,
        master=facts.master_broker_id,
        in_sync=frozenset(each for each in in_sync if each is not None),
        set_epoch=facts.sync_state_set_epoch or 0,
        members=members,
    )


def elected(reply: ElectMasterReply, in_sync: Collection[int], before: GroupView) -> GroupView:
    """The view after a reply to `ElectMaster`, which names no members."""
    return before._replace(
        epoch=reply.master_epoch or before.epoch,
        master=reply.master_broker_id,
        in_sync=frozenset(in_sync),
        set_epoch=reply.sync_state_set_epoch or before.set_epoch,
    )


def is_older(view: GroupView, known: GroupView) -> bool:
    """Whether a view is of an earlier moment than another one."""
    return (view.epoch, view.set_epoch) < (known.epoch, known.set_epoch)


def _member(replica: ReplicaIdentity, number: int, replication: Mapping[str, str]) -> Member:
    address = replica.broker_address or ""
    return Member(number, address, replication.get(address) or beside(address), bool(replica.alive))
