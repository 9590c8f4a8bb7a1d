"""Bounds the memory of frames that are not complete yet, over all connections of a server.

A frame may have 16 MiB, and a server thousands of connections: peers that send the first part of a
frame and then nothing could take any amount. Above the bound the connection whose frame has been
incomplete for longest is closed: an honest peer completes its frame, whatever its size, soon.
"""

from __future__ import annotations

import logging
from typing import Protocol

logger = logging.getLogger(__name__)

#: Smaller parts of frames are not counted, bytes; with the largest number of connections they take
#: as much as their sockets.
COUNTED_BYTES_MIN = 1 << 16


class Sending(Protocol):
    """A peer that may be closed."""

    address: str

    def abort(self) -> None:
        """Closes at once."""
        ...


class UnfinishedFrames:
    """The incomplete frames of a server's connections, from `COUNTED_BYTES_MIN` on.

    Args:
        bytes_max: the most bytes that they may have together.
        what: what is counted, for the log, if it is something else that peers should end soon.
    """

    __slots__ = ("_bytes_max", "_kept", "_total", "_what")

    def __init__(self, bytes_max: int, what: str = "incomplete requests") -> None:
        self._bytes_max = bytes_max
        self._what = what
        #: Bytes by peer; the peer whose frame began first comes first.
        self._kept: dict[Sending, int] = {}
        self._total = 0

    def note(self, peer: Sending, kept_bytes: int) -> None:
        """Counts the incomplete frame of a peer anew; fewer than `COUNTED_BYTES_MIN` end it."""
        before = self._kept.get(peer, 0)
        if kept_bytes < before:  # that frame was completed: what is kept now belongs to the next
            self.forget(peer)
            before = 0
        if kept_bytes < COUNTED_BYTES_MIN:
            return
        self._kept[peer] = kept_bytes
        self._total += kept_bytes - before
        while self._total > self._bytes_max:
            oldest = next(iter(self._kept))
            logger.warning(
                "%s is let go: all %s may have %d bytes together, and its have waited longest",
                oldest.address,
                self._what,
                self._bytes_max,
            )
            self.forget(oldest)
            oldest.abort()

    def forget(self, peer: Sending) -> None:
        """Ends the count of a peer whose frame is complete, or that is gone."""
        self._total -= self._kept.pop(peer, 0)
