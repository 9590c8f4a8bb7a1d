"""The bytes of a file that is open for reading, read by system calls."""

from __future__ import annotations

import os
import sys


class SystemFileBytes:
    """A `FileBytes` of a file that another process may be writing."""

    __slots__ = ("_file", "_size")

    def __init__(self, path: str) -> None:
        """
        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  open as long as it is used
        self._size = os.fstat(self._file.fileno()).st_size

    def __len__(self) -> int:
        """Bytes in the file when it was opened."""
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """A copy of bytes of the file.

        Raises:
            OSError: the disk failed.
        """
        start, end, _ = part.indices(self._size)
        if sys.platform == "win32":
            self._file.seek(start)
            return self._file.read(max(end - start, 0))
        return os.pread(self._file.fileno(), max(end - start, 0), start)

    def __del__(self) -> None:
        """Closes the file."""
        if hasattr(self, "_file"):
            self._file.close()
