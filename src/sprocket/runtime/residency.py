"""Whether mapped bytes are in memory, by the kernel's `mincore` (Linux only)."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable

_PAGE = mmap.PAGESIZE
#: All values with the lowest bit set, which `mincore` sets for a page in memory.
_THERE = bytes(range(1, 256, 2))


def _find() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError):  # a C library without it
        return None
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    mincore.restype = ctypes.c_int
    found: Callable[..., int] = mincore
    return found


_mincore = _find()


def address_of(mapped: mmap.mmap) -> int:
    """The address where a mapping begins; valid as long as it is mapped."""
    return ctypes.addressof(ctypes.c_char.from_buffer(mapped))


def is_resident(address: int, start: int, end: int) -> bool:
    """Whether all pages of bytes [start, end) of a mapping are in memory; true if unknown."""
    if _mincore is None or start >= end:
        return True
    first = start - start % _PAGE
    pages = ctypes.create_string_buffer((end - first + _PAGE - 1) // _PAGE)
    if _mincore(address + first, end - first, pages):
        return True
    return not pages.raw.translate(None, _THERE)
