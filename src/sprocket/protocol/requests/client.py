"""Requests about clients: heartbeats, members, and requests that a broker passes on to them.

Source: HeartbeatRequestHeader, UnregisterClient…, GetConsumerListByGroup…,
NotifyConsumerIdsChanged…, GetConsumerRunningInfo…, ConsumeMessageDirectlyResult… of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Header, Int


class HeartbeatReply(Header, kw_only=True):
    """The reply to a heartbeat."""

    is_support_heart_beat_v2: bool = msgspec.field(default=False, name="IS_SUPPORT_HEART_BEAT_V2")
    is_sub_change: bool = msgspec.field(default=False, name="IS_SUB_CHANGE")


class Heartbeat(Header, kw_only=True):
    """Shows that a client is alive; request body: `HeartbeatBody`."""

    code: ClassVar[int] = 34
    reply: ClassVar[type[Header]] = HeartbeatReply


class Unregister(Header, kw_only=True):
    """Removes a client from a producer or consumer group."""

    code: ClassVar[int] = 35

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ProxiedClientsReply(Header, kw_only=True):
    """How many clients of the proxy the broker knows now."""

    known: Int


class ProxiedClients(Header, kw_only=True):
    """A proxy lists its clients that have come, changed or left; request body:
    `ProxiedClientsBody`. All others live on. RocketMQ has no such request.

    Attributes:
        is_whole: whether the broker is to forget all that were listed before.
    """

    code: ClassVar[int] = OwnRequestCode.PROXIED_CLIENTS
    reply: ClassVar[type[Header]] = ProxiedClientsReply

    is_whole: bool = False


class GroupMembers(Header, kw_only=True):
    """Asks for the client ids of a consumer group; reply body: `GroupMemberList`."""

    code: ClassVar[int] = 38

    consumer_group: str


class IdsChanged(Header, kw_only=True):
    """Broker to client, one-way: the members of its group have changed."""

    code: ClassVar[int] = 40

    consumer_group: str


class CheckClient(Header, kw_only=True):
    """Asks whether a subscription can be parsed; request body: `CheckClientBody`."""

    code: ClassVar[int] = 46


class ConsumerConnections(Header, kw_only=True):
    """Asks for the connected consumers of a group; reply body: `ConsumerConnection`."""

    code: ClassVar[int] = 203

    consumer_group: str


class ProducerConnections(Header, kw_only=True):
    """Asks for the connected producers of a group; reply body: `ProducerConnection`."""

    code: ClassVar[int] = 204

    producer_group: str


class AllProducers(Header, kw_only=True):
    """Asks for all producers of a broker; reply body: `ProducerTable`."""

    code: ClassVar[int] = 328


class ConsumerRunning(Header, kw_only=True):
    """Asks for a consumer's state; the broker passes it on. Reply body: `RunningInfo`."""

    code: ClassVar[int] = 307

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectly(Header, kw_only=True):
    """Lets one client consume one message now; the broker passes it on with the record as body.

    Reply body: `ConsumeDirectlyResult`.
    """

    code: ClassVar[int] = 309

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
