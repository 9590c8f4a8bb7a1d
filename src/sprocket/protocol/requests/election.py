"""Requests to RocketMQ's controller, which decides who is the master of the brokers of one name,
and the ones about it that brokers answer.

A broker's heartbeat to the controller is `BrokerHeartbeat`. Refusals have codes 2000 to 2016.
Source: package `header.controller`, NotifyBrokerRoleChangedRequestHeader, ExchangeHAInfo…Header,
ControllerRequestProcessor, AdminBrokerProcessor of RocketMQ 5.3.3.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long


class ExchangeReplicaAddressReply(Header, kw_only=True):
    """A master's address for slaves, and how far its log was flushed when it started."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class ExchangeReplicaAddress(Header, kw_only=True):
    """Without fields: asks a master for its address for slaves. With them: a master sends it."""

    code: ClassVar[int] = 906
    reply: ClassVar[type[Header]] = ExchangeReplicaAddressReply

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class AlterInSyncSetReply(Header, kw_only=True):
    """The version of the set after the change."""

    new_sync_state_set_epoch: Int = 0


class AlterInSyncSet(Header, kw_only=True):
    """A master changes the in-sync set; request body: `InSyncSetBody` with the version that it
    has seen. Reply body: the new one."""

    code: ClassVar[int] = 1001
    reply: ClassVar[type[Header]] = AlterInSyncSetReply

    broker_name: str
    master_broker_id: Long
    master_epoch: Int
    invoke_time: Long = 0


class ElectMasterReply(Header, kw_only=True):
    """The master now. It comes also with code 2011: the old one is alive."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


class ElectMaster(Header, kw_only=True):
    """Asks for an election; reply body: `ElectedBody`.

    Attributes:
        broker_id: who asks; or, with `designate_elect`, who shall be the master; -1 for nobody.
    """

    code: ClassVar[int] = 1002
    reply: ClassVar[type[Header]] = ElectMasterReply

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: Long = -1
    designate_elect: bool = False
    invoke_time: Long = 0


class RegisterMemberReply(Header, kw_only=True):
    """The master, if it is alive."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


class RegisterMember(Header, kw_only=True):
    """Registers the address of a member; reply body: `InSyncSetBody`."""

    code: ClassVar[int] = 1003
    reply: ClassVar[type[Header]] = RegisterMemberReply

    cluster_name: str
    broker_name: str
    broker_id: Long
    broker_address: str
    invoke_time: Long = 0


class ReplicaInfoReply(Header, kw_only=True):
    """The master, and its epoch."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None


class ReplicaInfo(Header, kw_only=True):
    """Asks who is the master; reply body: `InSyncSetBody`."""

    code: ClassVar[int] = 1004
    reply: ClassVar[type[Header]] = ReplicaInfoReply

    broker_name: str


class ControllerMetadataReply(Header, kw_only=True):
    """The controllers. `peers`: `id:host:port` of each, with a semicolon after it."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


class ControllerMetadata(Header, kw_only=True):
    """Asks any controller which one leads them."""

    code: ClassVar[int] = 1005
    reply: ClassVar[type[Header]] = ControllerMetadataReply


class InSyncSets(Header, kw_only=True):
    """Asks for all members of some groups; request body: a JSON list of broker names; reply body:
    `ReplicaTable`, without those that are not known."""

    code: ClassVar[int] = 1006


class EpochEntries(Header, kw_only=True):
    """Asks a broker for the epochs of its log; reply body: `EpochEntriesBody`."""

    code: ClassVar[int] = 1007


class RoleChanged(Header, kw_only=True):
    """The controller tells a broker of a new master, one-way; request body: `InSyncSetBody`."""

    code: ClassVar[int] = 1008

    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None
    master_broker_id: Long | None = None


class UpdateControllerConfig(Header, kw_only=True):
    """Changes settings of a controller; request body: lines `key=value`."""

    code: ClassVar[int] = 1009


class ReadControllerConfig(Header, kw_only=True):
    """Asks for a controller's settings; reply body: lines `key=value`."""

    code: ClassVar[int] = 1010


class RemoveMembers(Header, kw_only=True):
    """Removes members that do not run, or a whole group, from the controller.

    `broker_controller_ids_to_clean`: numbers separated by semicolons; without it, all.
    """

    code: ClassVar[int] = 1011

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: Long = 0


class NextMemberReply(Header, kw_only=True):
    """A number that no member had when this was sent."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Long | None = None


class NextMember(Header, kw_only=True):
    """Asks for the number that the next new member of a group can apply for."""

    code: ClassVar[int] = 1012
    reply: ClassVar[type[Header]] = NextMemberReply

    cluster_name: str
    broker_name: str


class ApplyForMember(Header, kw_only=True):
    """Makes a new member of that number, or succeeds again with the same check code.

    `register_check_code`: `host:port;milliseconds`, whose first part becomes the address.
    """

    code: ClassVar[int] = 1013

    cluster_name: str
    broker_name: str
    applied_broker_id: Long
    register_check_code: str
