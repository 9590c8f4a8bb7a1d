"""How many files this process may have open, by the system's limit."""

from __future__ import annotations

import sys

#: Where the system has no such limit.
_MANY = 1 << 16


class OpenFiles:
    """What a disk says about it."""

    __slots__ = ()

    @property
    def open_files_max(self) -> int:
        """How many files this process may have open; a mapped one counts as two."""
        if sys.platform == "win32":
            return _MANY
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return _MANY if allowed == resource.RLIM_INFINITY else allowed
