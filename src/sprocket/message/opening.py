"""Opens the compressed bodies of one answer, and bounds what they take together. Pure.

Each body alone is bounded by `OPENED_BYTES_MAX`, but a thousand bodies of 2 KB can each open to
that. So what one answer opens to is bounded as well: behind the bound nothing more is opened, and
the reader asks again for the messages from there on. The first compressed body is always opened.
"""

from __future__ import annotations

import math

from sprocket.base.errors import CorruptRecord
from sprocket.message.compression import (
    COMPRESSED,
    OPENED_BYTES_MAX,
    BodyTooLarge,
    open_body,
)

#: When the opened bodies of one answer have so many bytes, no further one is opened. An answer
#: takes at most this and one body.
OPENED_AT_ONCE_BYTES = 64 * 1024 * 1024


class OpeningStopped(Exception):
    """As much is opened as may be at once."""


class Opening:
    """Opens bodies up to a bound.

    Args:
        bytes_max: the bound.
        keeps_rest: leaves bodies behind the bound compressed instead of stopping there, for answers
            whose rest cannot be asked for again.

    Attributes:
        stopped_at: the queue offset of the first message that was not opened any more, or None.
    """

    __slots__ = ("_keeps_rest", "_left", "stopped_at")

    def __init__(
        self, bytes_max: float = OPENED_AT_ONCE_BYTES, *, keeps_rest: bool = False
    ) -> None:
        self._left = bytes_max
        self._keeps_rest = keeps_rest
        self.stopped_at: int | None = None

    def open(self, body: bytes, sys_flag: int, queue_offset: int) -> tuple[bytes, int]:
        """The opened body, and the system flag without the bit for compression.

        A body that cannot be opened stays as it is, with the bit.

        Raises:
            OpeningStopped: the bound is reached.
        """
        if self._left <= 0:
            if self._keeps_rest:
                return body, sys_flag
            self.stopped_at = queue_offset
            raise OpeningStopped
        try:
            opened = open_body(body, sys_flag)
        except BodyTooLarge:  # to find that out took as much as the largest body
            self._left -= OPENED_BYTES_MAX
            return body, sys_flag
        except CorruptRecord:
            return body, sys_flag
        self._left -= len(opened)
        return opened, sys_flag & ~COMPRESSED


def unbounded() -> Opening:
    """An opening for a single body, or for messages that are not kept."""
    return Opening(math.inf)
