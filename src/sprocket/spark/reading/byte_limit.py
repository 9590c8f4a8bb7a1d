"""Limits a micro-batch by bytes, which it estimates from the sizes of some of its messages.

Brokers say how many messages a queue has, not how many bytes. So single messages are pulled, at
random places spread evenly over what the micro-batch is likely to have. The estimate is their mean
size, or that of all messages pulled lately if it is larger: a few large messages that a small
sample misses still count, and a micro-batch is rather too small than too large. At most one message
in 16 is pulled, and at most 32 for a micro-batch.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from sprocket.message.queue import QueueId
from sprocket.spark.reading.ranges import Range, between, limit, records_in

#: Most messages that are pulled for one micro-batch, and of how many messages one is.
_SAMPLE_MAX = 32
_SAMPLE_EACH = 16
#: How many sizes are kept.
_KEPT = 1024
#: The largest message of a broker with RocketMQ's settings, assumed while nothing is known.
_ASSUMED_BYTES = 4 << 20
#: A micro-batch has at most so many times the messages over which the sample was spread.
_BEYOND_SAMPLE = 2

#: The sizes of messages, in bytes, by queue and offset; without those that are not to be had.
Sizes = Callable[[list[tuple[QueueId, int]]], Sequence[int]]


class ByteLimit:
    """Ends micro-batches of one query by bytes.

    Args:
        sizes: asks brokers.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._seen: deque[int] = deque(maxlen=_KEPT)
        self._random = random.Random(0)

    def lowered(
        self, start: Mapping[QueueId, int], end: Mapping[QueueId, int], bytes_max: int
    ) -> dict[QueueId, int]:
        """Lower ends, so that about `bytes_max` bytes are read, and at least one message.

        The queues share the micro-batch by what waits in each, as with `limit`.
        """
        if not self._seen:
            self._seen.extend(self._sampled(between(start, end)))
        ranges = between(start, limit(start, end, _fitting(bytes_max, _mean(self._seen))))
        sample = self._sampled(ranges)
        self._seen.extend(sample)
        records = _fitting(bytes_max, max(_mean(sample), _mean(self._seen)))
        return limit(start, end, min(records, _BEYOND_SAMPLE * records_in(ranges)))

    def _sampled(self, ranges: Sequence[Range]) -> Sequence[int]:
        """The sizes of messages at random places, one in each of equal parts of these ranges."""
        records = records_in(ranges)
        count = min(_SAMPLE_MAX, -(-records // _SAMPLE_EACH))
        wanted = [int((part + self._random.random()) * records / count) for part in range(count)]
        places: list[tuple[QueueId, int]] = []
        passed = 0
        for one in ranges:
            while len(places) < count and wanted[len(places)] < passed + one.records:
                places.append((one.queue, one.start + wanted[len(places)] - passed))
            passed += one.records
        return self._sizes(places)


def _mean(sizes: Collection[int]) -> float:
    """The mean size; 0 if none is known."""
    return sum(sizes) / max(1, len(sizes))


def _fitting(bytes_max: int, mean: float) -> int:
    """How many messages of a mean size fit; one, if none does."""
    return max(1, int(bytes_max / (mean or _ASSUMED_BYTES)))
