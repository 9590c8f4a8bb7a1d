"""A member's share of each topic's queues, and what follows from its size."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sprocket.client.config import FetchConfig
from sprocket.client.fetching.window import FetchLimits
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

#: Told of the queues of a topic that are this member's from now on.
OnShare = Callable[[str, Sequence[QueueId]], None]


class Shares:
    """Remembers shares, and tells a user's function of changes.

    Args:
        config: limits of queues and topics.
        on_share: the user's function, if there is one.
    """

    def __init__(self, config: FetchConfig, on_share: OnShare | None) -> None:
        self._config = config
        self._on_share = on_share
        self._shares: dict[str, list[QueueId]] = {}

    def set(self, topic: str, share: list[QueueId]) -> bool:
        """Takes note of a topic's share; whether it is another one than before."""
        if share == self._shares.get(topic, []):
            return False
        self._shares[topic] = share
        if self._on_share is not None:
            try:
                self._on_share(topic, list(share))
            except Exception:  # a user's function
                logger.exception("the function that is told of %s's queues failed", topic)
        return True

    def limits(self, topic: str) -> FetchLimits:
        """When to stop fetching from one of the topic's queues."""
        config, queues = self._config, max(1, len(self._shares.get(topic, ())))
        count, size = config.window_count_max, config.window_bytes_max
        if config.topic_count_max is not None:
            count = min(count, max(1, config.topic_count_max // queues))
        if config.topic_bytes_max is not None:
            size = min(size, max(1, config.topic_bytes_max // queues))
        return FetchLimits(count, size, config.window_span_max)
