"""Java's hash of a string, which RocketMQ writes into consume queues and indexes.

Pure. Source: `String.hashCode` of the Java platform; MessageExtBrokerInner.tagsString2tagsCode.
"""

from __future__ import annotations

from functools import lru_cache
from operator import mul

#: 31 to the powers 255 … 0, modulo 2^32. A text of n UTF-16 units uses the last n.
_POWERS = [pow(31, power, 1 << 32) for power in range(255, -1, -1)]
_BLOCK = len(_POWERS)
_BLOCK_FACTOR = pow(31, _BLOCK, 1 << 32)


def java_hash(text: str) -> int:
    """The hash of a text as Java's `String.hashCode` computes it: a signed 32-bit number."""
    # The hash is a polynomial in 31. A sum of products over a block of units runs in C; Java's own
    # loop, one step for each unit, would run in the interpreter.
    units = text.encode("latin-1") if text.isascii() else _utf16_units(text)
    hashed = 0
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK]
        factor = _BLOCK_FACTOR if len(block) == _BLOCK else pow(31, len(block), 1 << 32)
        hashed = hashed * factor + sum(map(mul, block, _POWERS[_BLOCK - len(block) :]))
    hashed &= 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed


def _utf16_units(text: str) -> memoryview | list[int]:
    raw = text.encode("utf-16-be", "surrogatepass")
    return [raw[at] << 8 | raw[at + 1] for at in range(0, len(raw), 2)]


@lru_cache(maxsize=4096)
def tag_code(tag: str | None) -> int:
    """The number in a consume queue entry for a tag: the tag's hash, or 0 without a tag."""
    return java_hash(tag) if tag else 0
