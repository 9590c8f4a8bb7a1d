"""A witness: a message by which a queue is recognised as the one that was read before. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Witness(NamedTuple):
    """Where a message is and when it was stored: no other message of a cluster has the same.

    Attributes:
        offset: its offset in the queue.
        log_offset: its place in the broker's log.
        stored_ms: when the broker stored it, ms since 1970.
    """

    offset: int
    log_offset: int
    stored_ms: int
