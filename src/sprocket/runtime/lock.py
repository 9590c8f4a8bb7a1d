"""A lock file that one process holds at a time, like that of Java's `FileChannel.tryLock`.

POSIX record locks belong to the process and end when any of its descriptors of the file is
closed, so a second `take` in this process is refused before the file is opened.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Real paths of the lock files that this process holds.
_held: set[str] = set()


class FileLock:
    """Held until released or until the process ends, however it ends."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: str) -> FileLock | None:
        """Locks the file and makes it if it is missing; None if it is locked already.

        Raises:
            OSError: the file cannot be opened.
        """
        path = os.path.realpath(path)
        if path in _held:
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        if not _lock_first_byte(descriptor):
            os.close(descriptor)
            return None
        _held.add(path)
        return cls(path, descriptor)

    @property
    def is_held(self) -> bool:
        """Whether it still keeps other processes out: its file was not removed or replaced."""
        try:
            return self._descriptor >= 0 and os.path.samestat(
                os.stat(self._path), os.fstat(self._descriptor)
            )
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Releases the lock. The file stays, as in RocketMQ."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _held.discard(self._path)


def _lock_first_byte(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError:
        return False
    return True
