"""The three ports to the operating system: clock, disk and entropy. No code uses these directly.

Network and monotonic time come from the asyncio loop. A part that needs a port receives it as a
constructor argument; `sprocket.runtime` has the real ports, `sprocket.testing` the seeded ones.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Clock(Protocol):
    """Wall clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC. May jump, also backwards."""
        ...


class Entropy(Protocol):
    """Randomness."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def below(self, limit: int) -> int:
        """A whole number in [0, limit)."""
        ...

    def token(self, size: int) -> bytes:
        """`size` random bytes."""
        ...


class FileBytes(Protocol):
    """The bytes of a file, which are read by system calls: `file[start:end]` is a copy of them.

    Parts that were never written can be read too. In a mapping that is not safe: on tmpfs such a
    read takes a page, and kills the process if there is none left.
    """

    def __len__(self) -> int:
        """Bytes in the file."""
        ...

    def __getitem__(self, part: slice, /) -> bytes | bytearray | memoryview:
        """Bytes of the file, as far as it has them.

        Raises:
            OSError: the disk failed.
        """
        ...


class MappedFile(FileBytes, Protocol):
    """One file of fixed size, mapped into memory and written in place.

    `buffer` is for parts that have disk space because they were written or reserved. All others are
    read as `FileBytes`.
    """

    @property
    def path(self) -> str:
        """The path at which it was mapped."""
        ...

    @property
    def buffer(self) -> memoryview:
        """The whole file, writable. Slices of it stay valid until `close`."""
        ...

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) are on the disk.

        Raises:
            OSError: the disk failed. Which of the bytes since the last good sync it has is unknown.
        """
        ...

    def zero(self, start: int, end: int) -> None:
        """Fills bytes [start, end) with zeros and allocates disk space for them, at once.

        On a full disk, a write to a part of the mapping without disk space can kill the process.

        Raises:
            OSError: there is no free space.
        """
        ...

    async def prepare(self, start: int, end: int) -> None:
        """Like `zero`, in the background. The caller may use bytes that `zero` fills meanwhile.

        Nothing else may be written into [start, end) before it returns.

        Raises:
            OSError: there is no free space; some of the bytes may be allocated already.
        """
        ...

    def reserve(self, start: int, end: int) -> None:
        """Allocates disk space for bytes [start, end) and keeps their values. Cheap if the system
        can do it.

        Raises:
            OSError: there is no free space.
        """
        ...

    def clear_from(self, start: int) -> None:
        """Makes all bytes from `start` on zero without reading them, and frees their disk space.

        Raises:
            OSError: the system refuses it.
        """
        ...

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) can be read without waiting; true if that is unknown."""
        ...

    async def load(self, start: int, end: int) -> None:
        """Reads bytes [start, end) into memory, in the background.

        Raises:
            OSError: the disk failed.
        """
        ...

    def read_ahead(self, is_on: bool) -> None:
        """Whether the system reads more of the file than is asked for, as it does at first."""
        ...

    def fault(self) -> str | None:
        """What happened to the file at its path, in words; None if it is unchanged."""
        ...

    async def put_back(self) -> None:
        """Writes the file again if it was removed: at its path, or with the suffix `.lost` if
        another file is there now. It is on the disk when this returns.

        Raises:
            OSError: the system refuses it.
        """
        ...

    def close(self) -> None:
        """Unmaps the file. It stays mapped as long as a reader holds a slice of it."""
        ...


class DirectoryLock(Protocol):
    """Held while a process owns a directory."""

    @property
    def is_held(self) -> bool:
        """Whether it still keeps other processes out: its file has not been removed."""
        ...

    def release(self) -> None:
        """Releases the directory."""
        ...


class Rotation(NamedTuple):
    """How a file that only grows is followed by a new one: `path.1` is the one before, and so on.

    Attributes:
        file_bytes: a file that is larger is followed by a new one.
        files: files that are kept, the growing one included.
    """

    file_bytes: int
    files: int

    def is_due(self, size: int, more: int) -> bool:
        """Whether a file of this size is full before `more` bytes."""
        return size > 0 and size + more > self.file_bytes

    def moves(self, path: str) -> list[tuple[str, str]]:
        """The files to rename, in this order; the last target may exist and is replaced."""
        names = [path, *(f"{path}.{number}" for number in range(1, self.files))]
        return list(zip(names[-2::-1], names[:0:-1], strict=True))


class Disk(Protocol):
    """Files and folders. Paths are absolute, as text with `/`."""

    @property
    def open_files_max(self) -> int:
        """How many files this process may have open; a mapped one counts as two."""
        ...

    def make_directory(self, path: str) -> None:
        """Makes a folder and all its parents; no error if it exists."""
        ...

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty if there is no such folder."""
        ...

    def size(self, path: str) -> int | None:
        """Bytes in a file, or None if there is none."""
        ...

    def map(self, path: str, size: int) -> MappedFile:
        """Maps a file of `size` bytes; makes it, zero-filled, if it is missing.

        Raises:
            OSError: no free space, no permission, or the file has another size.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """A whole file, or None if there is none."""
        ...

    def peek(self, path: str) -> FileBytes:
        """A file's bytes, for reading only; they show what others write.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        ...

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """Writes a small state file so that a crash leaves the old or the new one, never a mix.

        Writes a new file, syncs it, renames it, and syncs the folder. If `backup`, the previous
        version is kept as `path.bak`.
        """
        ...

    def replace_secret(self, path: str, content: bytes) -> None:
        """As `replace`, without a backup: only the user of this process may read the file."""
        ...

    def lengthen(self, path: str, size: int) -> None:
        """Gives a file that is shorter this size; the new bytes are zero.

        Raises:
            OSError: there is no such file, or the system refuses it.
        """
        ...

    async def replace_in_background(self, path: str, content: bytes, *, backup: bool) -> None:
        """As `replace`, for a large file: the event loop runs while it is written and synced.

        It is finished even if the caller is cancelled. Nothing else may write it meanwhile.
        """
        ...

    async def append_in_background(self, path: str, content: bytes, rotation: Rotation) -> None:
        """Writes lines to the end of a file and syncs it, while the event loop runs.

        Only the owner may read the file. A line that a crash cut is ended first.

        Raises:
            OSError: the disk failed or is full; then nothing of them is in the file.
        """
        ...

    def move(self, source: str, target: str) -> None:
        """Renames a file or folder into an existing folder, and syncs both folders.

        Raises:
            OSError: the source is missing, or the target is on another disk or not empty.
        """
        ...

    def remove(self, path: str) -> None:
        """Removes a file; no error if it is missing."""
        ...

    def usage(self, path: str) -> float:
        """The used fraction of the file system of `path`, in [0, 1]."""
        ...

    def lock(self, directory: str) -> DirectoryLock:
        """Locks a folder for this process.

        Raises:
            DirectoryInUse: another process holds the lock.
        """
        ...
