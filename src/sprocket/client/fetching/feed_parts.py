"""What the feeds of one consumer share."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from sprocket.client.config import FetchConfig
from sprocket.client.fetching.consume_mode import SHARING, ConsumeMode
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.client.session.session import Session


@dataclasses.dataclass(frozen=True, slots=True)
class FeedParts:
    """What the feeds of one consumer share.

    Attributes:
        offer: is called with a window that has messages to deliver.
        counters: count what pulls return.
        finish: for ordered consumption: waits until no message of a window is in flight; else None.
        renewal_ms: for ordered consumption: how often leases are renewed.
        mode: the consume mode.
        pauses: the queues from which nothing is fetched.
    """

    session: Session
    group: str
    config: FetchConfig
    offer: Callable[[Window], None]
    counters: Counters
    finish: Callable[[Window], Awaitable[None]] | None = None
    renewal_ms: int = 20_000
    mode: ConsumeMode = SHARING
    pauses: Pauses = dataclasses.field(default_factory=Pauses)
