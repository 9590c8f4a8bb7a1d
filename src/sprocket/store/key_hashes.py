"""Hashes of `topic#key`, many at a time.

Java's text hash is a polynomial, one step a character, which is slow here. What many keys begin
(the sender's part of a unique id) is hashed once. The last characters of many keys are put side by
side into one large number, as many bytes for each key, and go through each step together.

Source: IndexFile.indexKeyHashMethod of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sprocket.message.hashing import java_hash

#: Unique ids end in so many characters that differ from message to message. As many bytes hold the
#: hash of so many characters.
_TAIL = 12
_LANES = 256
_LOW_BYTES = sum(0xFF << 8 * _TAIL * lane for lane in range(_LANES))
#: The low 4 bytes of each lane.
_LOWS = struct.Struct(">" + "8xI" * _LANES)
_POWERS = [pow(31, power, 1 << 32) for power in range(_TAIL + 1)]
_HEADS_MAX = 4096
_SIGN = 1 << 31
#: Java's `Math.abs` has no answer for the smallest number; RocketMQ takes 0 then.
_POSITIVE = _SIGN - 1


class KeyHashes:
    """Hashes keys; remembers what they begin with."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], int] = {}

    def of(self, topic: str, key: str) -> int:
        """The hash that the index holds for a key: Java's, without its sign."""
        return abs(java_hash(f"{topic}#{key}")) & _POSITIVE

    def of_all(self, keys: Sequence[tuple[str, str]]) -> list[int]:
        """The hashes of many pairs of topic and key."""
        hashes: list[int] = []
        for start in range(0, len(keys), _LANES):
            hashes += self._of_some(keys[start : start + _LANES])
        return hashes

    def _of_some(self, keys: Sequence[tuple[str, str]]) -> list[int]:
        joined = "".join([key[-_TAIL:] for _, key in keys])
        if len(joined) < _TAIL * len(keys):  # characters of code 0 in front change no hash
            joined = "".join([key[-_TAIL:].rjust(_TAIL, "\0") for _, key in keys])
        if not joined.isascii():
            return [self.of(topic, key) for topic, key in keys]
        lows = _sums(joined)
        if len({(topic, key[:-_TAIL]) for topic, key in keys}) == 1 and len(keys[0][1]) > _TAIL:
            topic, key = keys[0]  # those of one producer begin alike
            begun = self._begun(topic, key[:-_TAIL]) * _POWERS[_TAIL]
            hashes = [begun + low & 0xFFFFFFFF for low in lows[: len(keys)]]
        else:
            hashes = [
                self._begun(topic, key[:-_TAIL]) * _POWERS[min(len(key), _TAIL)] + low & 0xFFFFFFFF
                for (topic, key), low in zip(keys, lows, strict=False)
            ]
        return [hashed if hashed < _SIGN else 2 * _SIGN - hashed & _POSITIVE for hashed in hashes]

    def _begun(self, topic: str, head: str) -> int:
        """The hash of what a topic's keys begin with."""
        hashed = self._heads.get((topic, head))
        return self._learn(topic, head) if hashed is None else hashed

    def _learn(self, topic: str, head: str) -> int:
        """Hashes and remembers what a topic's keys begin with."""
        if len(self._heads) >= _HEADS_MAX:
            self._heads.clear()
        hashed = self._heads[topic, head] = java_hash(f"{topic}#{head}")
        return hashed


def _sums(joined: str) -> tuple[int, ...]:
    """The hash of each lane's characters, all steps taken by all lanes together."""
    lanes = int.from_bytes(joined.encode().ljust(_TAIL * _LANES, b"\0"), "big")
    sums = 0
    for place in range(_TAIL - 1, -1, -1):
        sums = sums * 31 + (lanes >> 8 * place & _LOW_BYTES)
    return _LOWS.unpack(sums.to_bytes(_TAIL * _LANES, "big"))
