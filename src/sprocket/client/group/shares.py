"""A member's assignment of each topic, and the fetch limits that follow from its size."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sprocket.client.base.user_code import call_on_loop
from sprocket.client.config import FetchConfig
from sprocket.client.fetching.window import FetchLimits
from sprocket.client.group.local_offsets import LocalOffsets
from sprocket.client.group.lookup import Lookup, RouteLookup, SharedLookup, SoleLookup
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

#: Is called with a topic and the queues of it that are assigned to this member from now on.
OnShare = Callable[[str, Sequence[QueueId]], None]


class MembershipOptions(NamedTuple):
    """Options of a consumer that differs from a clustering push consumer.

    Attributes:
        chosen: returns the queues of a topic that are assigned by hand, without a membership.
        local: where a broadcasting consumer stores its offsets.
        on_share: is called when the assignment of a topic changes.
        on_held: is called when the consumer starts to read a queue.
        lookup: makes what finds the queues to pull, where that is not decided by the members.
    """

    chosen: Callable[[str], Sequence[QueueId]] | None = None
    local: LocalOffsets | None = None
    on_share: OnShare | None = None
    on_held: Callable[[], None] | None = None
    lookup: Callable[[RouteLookup], Lookup] | None = None

    def lookup_of(self, routed: RouteLookup, *, is_alone: bool) -> Lookup:
        """What finds the queues to pull."""
        if self.lookup is not None:
            return self.lookup(routed)
        return SoleLookup(routed, self.chosen) if is_alone else SharedLookup(routed)


class Shares:
    """Remembers the assignments, and calls a user's function after changes.

    Args:
        config: the limits of queues and topics.
        on_share: the user's function, if there is one.
    """

    def __init__(self, config: FetchConfig, on_share: OnShare | None) -> None:
        self._config = config
        self._on_share = on_share
        self._shares: dict[str, list[QueueId]] = {}

    def set(self, topic: str, share: list[QueueId]) -> bool:
        """Records a topic's assignment; returns whether it has changed."""
        if share == self._shares.get(topic, []):
            return False
        self._shares[topic] = share
        if self._on_share is not None:
            try:
                call_on_loop(self._on_share, topic, list(share))
            except Exception:  # a user's function
                logger.exception("the function for assignments failed for topic %s", topic)
        return True

    def limits(self, topic: str) -> FetchLimits:
        """Returns the limits for one of the topic's queues."""
        config, queues = self._config, max(1, len(self._shares.get(topic, ())))
        count, size = config.window_count_max, config.window_bytes_max
        if config.topic_count_max is not None:
            count = min(count, max(1, config.topic_count_max // queues))
        if config.topic_bytes_max is not None:
            size = min(size, max(1, config.topic_bytes_max // queues))
        return FetchLimits(count, size, config.window_span_max)
