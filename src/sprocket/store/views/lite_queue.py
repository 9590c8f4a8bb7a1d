"""Where the messages of one lite topic are: what is in memory of its queue. Pure.

The messages of a lite topic have numbers among those of all lite topics, see `lite_queues`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from sprocket.message.lite import LiteName

#: The number of the entry before the first one of a lite topic.
NONE = -1
#: Of every so many messages of a lite topic the number of the entry is in memory.
STRIDE = 64


class LiteQueue:
    """The queue of one lite topic.

    Attributes:
        max_offset: the offset that its next message gets.
        last: the number of its last entry in the shared queue.
        last_known: the number of an entry that was the last one, and when its record was stored;
            None if nobody asked.
    """

    __slots__ = (
        "_low", "_low_at", "_skip_first", "_skips", "last", "last_known", "max_offset",
        "name",
    )  # fmt: skip

    def __init__(self, name: LiteName, offset: int) -> None:
        self.name = name
        self.max_offset = offset
        self.last = NONE
        self.last_known: tuple[int, int] | None = None
        #: Offset of the first message there is, while the shared queue begins at `_low_at`.
        self._low, self._low_at = offset, 0
        #: Entries of the offsets that are multiples of the stride, from `_skip_first` strides on.
        self._skips: array[int] | None = None
        self._skip_first = 0

    def add(self, index: int) -> None:
        """Adds the next message, whose entry has this number."""
        strides, rest = divmod(self.max_offset, STRIDE)
        if not rest and strides:
            if self._skips is None:
                self._skips, self._skip_first = array("q"), strides
            self._skips.append(index)
        self.last = index
        self.max_offset += 1

    def near(self, offset: int) -> tuple[int, int]:
        """An offset that is not lower, as near as one is known, and the number of its entry."""
        skips = self._skips
        if skips is not None:
            at = -(-offset // STRIDE) - self._skip_first
            if 0 <= at < len(skips):
                return (at + self._skip_first) * STRIDE, skips[at]
        return self.max_offset - 1, self.last

    def low(self, first: int, before: Callable[[int], int]) -> int:
        """The offset of its first message whose entry is not before the entry `first`.

        Args:
            before: gives the number of the entry before another one.
        """
        if self._low_at == first:
            return self._low
        skips = self._skips
        while skips and skips[0] < first:
            gone = next((at for at, index in enumerate(skips) if index >= first), len(skips))
            del skips[:gone]
            self._skip_first += gone
        if self.last < first:
            offset = self.max_offset
        else:
            offset, index = self.max_offset - 1, self.last
            if skips:
                offset, index = self._skip_first * STRIDE, skips[0]
            while offset > self._low and (index := before(index)) >= first:
                offset -= 1
        self._low, self._low_at = offset, first
        return offset
