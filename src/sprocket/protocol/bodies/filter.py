"""Bodies about filters in Python, which RocketMQ does not have."""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long


class FilterFacts(Body):
    """One version of a filter.

    Attributes:
        is_newest: whether a subscription without a version gets this one.
        is_running: whether it has a process now.
        judged, wanted: the numbers of messages since the broker's start.
        off: why it is switched off; empty if it is on.
    """

    group: str = always("")
    is_newest: bool = always(False)
    is_running: bool = always(False)
    judged: Long = always(0)
    name: str = always("")
    off: str = always("")
    source_bytes: Long = always(0)
    topic: str = always("")
    uploaded_by: str = always("")
    uploaded_ms: Long = always(0)
    version: str = always("")
    wanted: Long = always(0)


class FilterList(Body):
    """Reply body of `FiltersOf`."""

    filters: list[FilterFacts] = always([])
