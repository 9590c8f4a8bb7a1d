"""What brokers tell of filters in Python; ours alone."""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long


class FilterFacts(Body):
    """One version of a filter.

    Attributes:
        is_newest: whether it is what a subscription gets that names no version.
        is_running: whether it has a process now.
        judged, wanted: messages since the broker's start.
        off: why it is switched off; empty while it is not.
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
    """Body of the answer to `FiltersOf`."""

    filters: list[FilterFacts] = always([])
