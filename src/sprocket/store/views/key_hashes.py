"""Hashes of `topic#key`, many at a time.

Java's text hash is a polynomial: each character counts 31 times as much as the next one. So the
first characters of all keys form one column, the second characters the next, and each column is
computed at once. Where all keys have the same character, as at the beginning of one sender's ids,
one number is enough. Elsewhere the column becomes one large integer with 8 bytes for each key.

Source: IndexFile.indexKeyHashMethod of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

from sprocket.message.hashing import java_hash

#: This many keys are computed side by side. A sum of `_CHARACTERS_MAX` characters, each multiplied
#: by less than 2^32, stays within the 8 bytes of its key.
_LANES = 1024
_CHARACTERS_MAX = 128
_LANE_BYTES = 8
#: The least significant byte and half of a lane.
_LOW_BYTE, _LOW_HALF = (0, 0) if sys.byteorder == "little" else (7, 1)
_POWERS = [pow(31, power, 1 << 32) for power in range(_CHARACTERS_MAX + 1)]
_TOPICS_MAX = 4096
#: Java's `Math.abs` of the smallest number is negative; RocketMQ uses 0 then.
_POSITIVE = (1 << 31) - 1


class KeyHashes:
    """Hashes keys, and keeps the hashes of topics."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        #: Hashes of topics, each with the `#` behind it.
        self._topics: dict[str, int] = {}

    def of(self, topic: str, key: str) -> int:
        """The hash that the index holds for a key: Java's, without its sign."""
        return abs(java_hash(f"{topic}#{key}")) & _POSITIVE

    def of_all(self, topics: Sequence[str], keys: Sequence[bytes]) -> list[int]:
        """The hashes of many keys in UTF-8, each with its topic."""
        sizes = list(map(len, keys))
        if len(set(sizes)) < 2:
            return self._of_rows(topics, keys)
        if len(set(sizes[::2])) == len(set(sizes[1::2])) == 1:  # unique keys, and one key each
            hashes = [0] * len(keys)
            hashes[::2] = self._of_rows(topics[::2], keys[::2])
            hashes[1::2] = self._of_rows(topics[1::2], keys[1::2])
            return hashes
        # Sorted by length, keys take a third of the time.
        order = sorted(range(len(keys)), key=sizes.__getitem__)
        ordered = self._of_rows([topics[at] for at in order], [keys[at] for at in order])
        hashes = [0] * len(keys)
        for at, hashed in zip(order, ordered, strict=True):
            hashes[at] = hashed
        return hashes

    def _of_rows(self, topics: Sequence[str], keys: Sequence[bytes]) -> list[int]:
        hashes: list[int] = []
        for start in range(0, len(keys), _LANES):
            hashes += self._of_some(topics[start : start + _LANES], keys[start : start + _LANES])
        return hashes

    def _of_some(self, topics: Sequence[str], keys: Sequence[bytes]) -> list[int]:
        # Java's hash is a sum of characters times powers of 31. Keys of one length are added up
        # column by column: all keys side by side are one large integer, with a lane of bytes for
        # each key, so Python's big-number arithmetic does in one step what a loop would do for each
        # key.
        sizes = set(map(len, keys))
        longest = max(sizes)
        joined = b"".join(keys)
        if longest > _CHARACTERS_MAX or not joined.isascii():
            return [self.of(topic, _text(key)) for topic, key in zip(topics, keys, strict=True)]
        count = len(keys)
        if len(joined) < longest * count:  # characters of code 0 in front change no hash
            joined = b"".join([key.rjust(longest, b"\0") for key in keys])
        if len(sizes) == 1 and topics.count(topics[0]) == count:
            sums, same = 0, self._of_topic(topics[0]) * _POWERS[longest]
        else:
            sums, same = self._begun(topics, keys), 0
        for place in range(longest):
            column = joined[place::longest]
            power = _POWERS[longest - 1 - place]
            if column == column[:1] * count:
                same += column[0] * power
            else:
                lanes = bytearray(_LANE_BYTES * count)
                lanes[_LOW_BYTE::_LANE_BYTES] = column
                sums += int.from_bytes(lanes, sys.byteorder) * power
        of_each = (same & 0xFFFFFFFF).to_bytes(_LANE_BYTES, sys.byteorder)
        sums += int.from_bytes(of_each * count, sys.byteorder)
        halves = memoryview(sums.to_bytes(_LANE_BYTES * count, sys.byteorder)).cast("i")
        hashes = list(map(abs, halves[_LOW_HALF::2]))
        return [each & _POSITIVE for each in hashes] if max(hashes) > _POSITIVE else hashes

    def _begun(self, topics: Sequence[str], keys: Sequence[bytes]) -> int:
        """What the topics add to the hashes: a large integer with a lane for each key."""
        own = [
            self._of_topic(topic) * _POWERS[len(key)] & 0xFFFFFFFF
            for topic, key in zip(topics, keys, strict=True)
        ]
        return int.from_bytes(array("Q", own).tobytes(), sys.byteorder)

    def _of_topic(self, topic: str) -> int:
        hashed = self._topics.get(topic)
        if hashed is None:
            if len(self._topics) >= _TOPICS_MAX:
                self._topics.clear()
            hashed = self._topics[topic] = java_hash(f"{topic}#")
        return hashed


def _text(key: bytes) -> str:
    try:
        return key.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return key.decode("utf-8", "replace")
