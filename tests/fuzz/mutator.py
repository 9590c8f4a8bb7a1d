"""Hostile inputs by chance, from good ones; and the smallest form of one that was found."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

#: Numbers at which programs err, in the forms of wires and files.
_EDGES = (0, 1, 2, 7, 127, 128, 255, 256, 32_767, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_FORMS = (">B", ">H", ">I", ">Q", "<I")


def mutated(seeds: Sequence[bytes], chance: random.Random, *, bytes_max: int = 8_192) -> bytes:
    """One of the seeds, changed at some places."""
    data = bytearray(chance.choice(seeds))
    for _ in range(1 << chance.randrange(5)):
        _CHANGES[chance.randrange(len(_CHANGES))](data, seeds, chance)
        del data[bytes_max:]
    return bytes(data)


def _place(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    at = _place(data, chance)
    part = chance.randbytes(chance.randrange(1, 9))
    data[at : at + len(part)] = part


def _edge(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    form, number = chance.choice(_FORMS), chance.choice(_EDGES)
    size = struct.calcsize(form)
    at = _place(data, chance)
    data[at : at + size] = struct.pack(form, number & ((1 << 8 * size) - 1))


def _cut(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    at = _place(data, chance)
    del data[at : at + chance.choice((1, 2, 4, 8, 64, 1 << 13))]


def _double(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    at = _place(data, chance)
    part = data[at : at + chance.choice((1, 4, 16, 256))]
    data[at:at] = part * chance.choice((1, 1, 2, 16))


def _splice(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    other = chance.choice(seeds)
    start = chance.randrange(len(other) + 1)
    at = _place(data, chance)
    data[at : at + chance.choice((0, 8, 64))] = other[start : start + chance.choice((4, 32, 512))]


_CHANGES = (_flip, _overwrite, _edge, _cut, _double, _splice)


def smallest(data: bytes, fails: Callable[[bytes], bool], *, tries: int = 3_000) -> bytes:
    """The smallest input that still fails, as far as taking parts out of it leads.

    Args:
        fails: whether an input fails in the same way.
        tries: how often that is asked at most.
    """
    size = max(1, len(data) // 2)
    while tries > 0:
        at, was_cut = 0, False
        while at < len(data) and tries > 0:
            shorter = data[:at] + data[at + size :]
            tries -= 1
            if fails(shorter):
                data, was_cut = shorter, True
            else:
                at += size
        if size == 1 and not was_cut:
            break
        size = max(1, size // 2)
    return data
