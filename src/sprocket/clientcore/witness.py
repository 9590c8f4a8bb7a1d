"""A witness: a message by which a queue is recognised as the one that was read before. Pure."""

from __future__ import annotations

from typing import NamedTuple

#: In place of a log offset that is not known.
UNKNOWN = -1


class Witness(NamedTuple):
    """Where a message is and when it was stored: no other message of a cluster has the same.

    Attributes:
        offset: its offset in the queue.
        log_offset: its place in the broker's log; `UNKNOWN` where only its time was asked for.
        stored_ms: when the broker stored it, ms since 1970.
    """

    offset: int
    log_offset: int
    stored_ms: int

    def is_at(self, message: Witness) -> bool:
        """Whether a message that was found, with its log offset, is this one."""
        is_same = (self.offset, self.stored_ms) == (message.offset, message.stored_ms)
        return is_same and self.log_offset in (UNKNOWN, message.log_offset)
