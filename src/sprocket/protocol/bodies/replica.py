"""The state that a slave of Sprocket copies besides the log; RocketMQ has no such body."""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.bodies.group import GroupConfig
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


class ChangedState(Body):
    """Reply body of `StateChanges`: the rows that have changed, with their values of now.

    Attributes:
        deletions: by topic, the log offset before which its records are deleted.
        delays: the next offset to deliver, by delay level.
        delays_log_offset: where the log has what `delays` does not contain; None if unknown.
        filters: all versions by group, topic and name, joined by line breaks; the newest is last.
        forbidden: for each group of `groups`, the topics that it may not read, with their bits.
        groups, topics: null for one that is gone.
        is_first: whether a listing begins: what it does not show is gone.
        is_more: whether there is more at once.
        leases: by group and client id, the queues in the form of the file; empty if none.
        listing_at: the place where the listing continues; -1 at its end, or without one.
        log_end: the end of the master's log, which the state may refer to.
        offsets: by `topic@group` and queue, those that have changed.
        resets: by `topic@group`, the queues whose reset is not over, of those in this body.
        rows: by `topic@group`, all offsets; empty for one that is gone.
        timers: None if they are not in use.
        version: what the slave has with this.
    """

    deletions: dict[str, Long] = always({})
    delays: dict[Long, Long] = always({})
    delays_log_offset: Long | None = None
    filters: dict[str, list[CopiedFilter]] = always({})
    forbidden: dict[str, dict[str, Long]] = always({})
    groups: dict[str, GroupConfig | None] = always({})
    is_first: bool = always(False)
    is_more: bool = always(False)
    leases: dict[str, dict[str, list[str]]] = always({})
    listing_at: Long = always(-1)
    log_end: Long = always(0)
    offsets: dict[str, dict[Long, Long]] = always({})
    origin: str = always("")
    resets: dict[str, list[Long]] = always({})
    rows: dict[str, dict[Long, Long]] = always({})
    timers: TimerState | None = None
    topics: dict[str, TopicConfig | None] = always({})
    version: Long = always(0)
