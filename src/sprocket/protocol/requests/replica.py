"""Requests of a slave to its master, besides those for the log itself.

Source: AdminBrokerProcessor, SlaveSynchronize of RocketMQ 4.9 and 5.x. The other lists that a
slave copies are `AllTopicConfigs`, `AllOffsets`, `AllGroupConfigs`, `AllRequestModes`.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Header, Int, Long


class AllDelayOffsets(Header, kw_only=True):
    """Asks for the progress of the delay levels; reply body: `DelayOffsets`."""

    code: ClassVar[int] = 45


class TimerCheckPoint(Header, kw_only=True):
    """Asks for the progress of the timer; reply body: six numbers of 8 bytes and more."""

    code: ClassVar[int] = 60


class TimerMetrics(Header, kw_only=True):
    """Asks how many messages wait in the timer; reply body: `TimerMetricsBody`."""

    code: ClassVar[int] = 61


class MemberStateReply(Header, kw_only=True):
    """How far the log of a member of a group is, and whether it hears its master."""

    broker_id: Long
    epoch: Long
    end: Long
    hears_master: bool


class MemberState(Header, kw_only=True):
    """Asks another broker of the group, before one takes the place of a lost master."""

    code: ClassVar[int] = OwnRequestCode.MEMBER_STATE
    reply: ClassVar[type[Header]] = MemberStateReply


class HeldLeases(Header, kw_only=True):
    """A master that comes back asks a slave for the leases that it gave in its place; reply body:
    `HeldLeasesBody`. The slave gives none for a while then."""

    code: ClassVar[int] = OwnRequestCode.HELD_LEASES


class EscapedMessages(Header, kw_only=True):
    """Asks a slave which messages it has delivered at other masters in its master's place; reply
    body: the log offsets of their records, a JSON array, by zlib. The slave delivers none for a
    while then."""

    code: ClassVar[int] = OwnRequestCode.ESCAPED_MESSAGES


class GroupStateOf(Header, kw_only=True):
    """Asks a broker for its own state and its group's; reply body: `GroupStateBody`."""

    code: ClassVar[int] = OwnRequestCode.GROUP_STATE


class HandOver(Header, kw_only=True):
    """Asks a member of a group to have another one made the master; reply body: `GroupStateBody`.

    The master gives its place without losing anything; any other member asks its elector.

    Attributes:
        to: the number of the new master; None for the best that is in sync.
        is_unclean: whether it may miss what was acknowledged, which is lost then.
    """

    code: ClassVar[int] = OwnRequestCode.HAND_OVER

    to: Long | None = None
    is_unclean: bool = False


class ReplicaState(Header, kw_only=True):
    """Asks for the state of replication; reply body: `ReplicaStateBody`."""

    code: ClassVar[int] = 907


class StateChanges(Header, kw_only=True):
    """Asks for what has changed in the tables of Sprocket's broker; reply body: `ChangedState`.

    `origin`, `since`: the version that the slave has, or an empty text and -1;
    `listing_at`: the place in a listing of all rows, -1 without one;
    `wait_ms`: how long the reply may wait for changes;
    `broker_id`: the slave's number. RocketMQ has no such request.
    """

    code: ClassVar[int] = OwnRequestCode.STATE_CHANGES

    broker_id: Long
    origin: str = ""
    since: Long = -1
    listing_at: Long = -1
    wait_ms: Int = 0
