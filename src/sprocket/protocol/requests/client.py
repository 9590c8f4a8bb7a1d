"""Clients: who is there, who left, what they do.

Source: HeartbeatRequestHeader, UnregisterClient…, GetConsumerListByGroup…,
NotifyConsumerIdsChanged…, GetConsumerRunningInfo…, ConsumeMessageDirectlyResult… of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.command import Header, Int


class HeartbeatReply(Header, kw_only=True):
    """What the broker made of a heartbeat."""

    is_support_heart_beat_v2: bool = msgspec.field(default=False, name="IS_SUPPORT_HEART_BEAT_V2")
    is_sub_change: bool = msgspec.field(default=False, name="IS_SUB_CHANGE")


class Heartbeat(Header, kw_only=True):
    """A client is there; body `HeartbeatBody`."""

    code: ClassVar[int] = 34
    reply: ClassVar[type[Header]] = HeartbeatReply


class Unregister(Header, kw_only=True):
    """A client leaves a producer or consumer group."""

    code: ClassVar[int] = 35

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GroupMembers(Header, kw_only=True):
    """Client ids of a consumer group; body of the answer: `GroupMemberList`."""

    code: ClassVar[int] = 38

    consumer_group: str


class IdsChanged(Header, kw_only=True):
    """Broker to client, one-way: the members of its group changed."""

    code: ClassVar[int] = 40

    consumer_group: str


class CheckClient(Header, kw_only=True):
    """Whether a subscription can be read; body `CheckClientBody`."""

    code: ClassVar[int] = 46


class ConsumerConnections(Header, kw_only=True):
    """Who consumes as a group; body of the answer: `ConsumerConnection`."""

    code: ClassVar[int] = 203

    consumer_group: str


class ProducerConnections(Header, kw_only=True):
    """Who produces as a group; body of the answer: `ProducerConnection`."""

    code: ClassVar[int] = 204

    producer_group: str


class AllProducers(Header, kw_only=True):
    """All producers of a broker; body of the answer: `ProducerTable`."""

    code: ClassVar[int] = 328


class ConsumerRunning(Header, kw_only=True):
    """What a consumer is doing; the broker passes it on. Body of the answer: `RunningInfo`."""

    code: ClassVar[int] = 307

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectly(Header, kw_only=True):
    """Has one client consume one message now; the broker passes it on with the record as body.

    Body of the answer: `ConsumeDirectlyResult`.
    """

    code: ClassVar[int] = 309

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
