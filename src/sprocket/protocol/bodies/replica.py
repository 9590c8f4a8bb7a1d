"""The state that a slave of Sprocket copies besides the log; RocketMQ has no such body."""

from __future__ import annotations

from typing import Any

from sprocket.protocol.bodies.accounts import AclBody, UserBody
from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.bodies.group import GroupConfig, RequestMode
from sprocket.protocol.bodies.static_topic import MappingDetail
from sprocket.protocol.bodies.topic import TopicConfig
from sprocket.protocol.command import Long


class CopiedFilter(Body):
    """A filter in Python. See `sprocket.filterserver.uploads.Uploaded`."""

    group: str = always("")
    name: str = always("")
    off: str = always("")
    source: str = always("")
    topic: str = always("")
    uploaded_by: str = always("")
    uploaded_ms: Long = always(0)
    version: str = always("")


class HeldLeasesBody(Body):
    """Reply body of `HeldLeases`: by group and client id, the queues in the form of the file."""

    leases: dict[str, dict[str, list[str]]] = always({})


class TimerState(Body):
    """The progress of the timers. See `sprocket.delay.timers.timer_check.TimerProgress`."""

    delivered_from: Long = always(0)
    queue_then: Long = always(0)
    slot_ms: Long = always(0)


class CopiedAccount(Body):
    """A user, with its password, and its policies."""

    acl: AclBody = always(AclBody())
    user: UserBody = always(UserBody())


class ChangedState(Body):
    """Reply body of `StateChanges`: the rows that have changed, with their values of now.

    Attributes:
        accounts: null for a user who is gone.
        deletions: by topic, the log offset before which its records are deleted.
        delays: the next offset to deliver, by delay level.
        delays_log_offset: where the log has what `delays` does not contain; None if unknown.
        filters: all versions by group, topic and name, joined by line breaks; the newest is last.
        flying: by `topic@group` and queue, messages popped and not acknowledged, of those in
            `offsets` and `rows`.
        forbidden: for each group of `groups`, the topics that it may not read, with their bits.
        groups, topics: null for one that is gone.
        has_accounts: whether the slave may have users and their passwords; otherwise `accounts` is
            empty, and says nothing.
        is_first: whether a listing begins: what it does not show is gone.
        is_more: whether there is more at once.
        leases: by group and client id, the queues in the form of the file; empty if none.
        listing_at: the place where the listing continues; -1 at its end, or without one.
        log_end: the end of the master's log, which the state may refer to.
        mappings: of those of `topics` that are static.
        marks: by topic and queue, the offset of the first record about popped messages that the
            slave's state does not contain with this; None if that is unknown.
        modes: by topic and group, how the group consumes the topic; empty if none is set.
        offsets: by `topic@group` and queue, those that have changed.
        orders: by `topic@group` and queue, what was popped in order, as in its file; null for what
            is gone.
        resets: by `topic@group`, the queues whose reset is not over, of those in this body.
        rows: by `topic@group`, all offsets; empty for one that is gone.
        timers: None if they are not in use.
        version: what the slave has with this.
        voids: by `topic@group` and queue, up to when handles of popped messages are void, ms; of
            those in `offsets` and `rows`.
    """

    accounts: dict[str, CopiedAccount | None] = always({})
    deletions: dict[str, Long] = always({})
    delays: dict[Long, Long] = always({})
    delays_log_offset: Long | None = None
    filters: dict[str, list[CopiedFilter]] = always({})
    flying: dict[str, dict[Long, Long]] = always({})
    forbidden: dict[str, dict[str, Long]] = always({})
    groups: dict[str, GroupConfig | None] = always({})
    has_accounts: bool = always(False)
    is_first: bool = always(False)
    is_more: bool = always(False)
    leases: dict[str, dict[str, list[str]]] = always({})
    listing_at: Long = always(-1)
    log_end: Long = always(0)
    mappings: dict[str, MappingDetail] = always({})
    marks: dict[str, dict[Long, Long]] | None = None
    modes: dict[str, dict[str, RequestMode]] = always({})
    offsets: dict[str, dict[Long, Long]] = always({})
    orders: dict[str, dict[Long, dict[str, Any] | None]] = always({})
    origin: str = always("")
    resets: dict[str, list[Long]] = always({})
    rows: dict[str, dict[Long, Long]] = always({})
    timers: TimerState | None = None
    topics: dict[str, TopicConfig | None] = always({})
    version: Long = always(0)
    voids: dict[str, dict[Long, Long]] = always({})
