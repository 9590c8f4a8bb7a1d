"""How much memory the machine has."""

from __future__ import annotations

import os
import sys

#: What is assumed where the system does not say.
_USUAL_BYTES = 8 << 30


def memory_bytes() -> int:
    """The machine's memory, bytes."""
    if sys.platform == "win32":
        return _USUAL_BYTES
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return _USUAL_BYTES
