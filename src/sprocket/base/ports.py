"""The three things that code may not take from the world by itself: clock, disk, entropy.

Network and monotonic time are the asyncio loop. Whoever needs a port gets it as a constructor
argument; `sprocket.runtime` has the real ones, `sprocket.testing` the seeded ones.
"""

from __future__ import annotations

from typing import Protocol


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


class MappedFile(Protocol):
    """One file of fixed size, mapped into memory and written in place."""

    @property
    def path(self) -> str:
        """The path it was mapped under."""
        ...

    @property
    def buffer(self) -> memoryview:
        """The whole file, writable. Slices of it stay valid until `close`."""
        ...

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) are on the disk.

        Raises:
            OSError: the disk failed. What was written since the last good sync is unknown.
        """
        ...

    def zero(self, start: int, end: int) -> None:
        """Makes bytes [start, end) zero and gives them room on the disk, at once.

        What was written to the mapping without it may end the process when the disk is full.

        Raises:
            OSError: there is no room.
        """
        ...

    async def prepare(self, start: int, end: int) -> None:
        """Like `zero`, in the background. What `zero` reaches meanwhile belongs to the caller.

        Nothing else may be written into [start, end) before it returns.

        Raises:
            OSError: there is no room; some of the bytes may have got theirs.
        """
        ...

    def reserve(self, start: int, end: int) -> None:
        """Gives bytes [start, end) room on the disk, and leaves what they are. Cheap where it can.

        Raises:
            OSError: there is no room.
        """
        ...

    def clear_from(self, start: int) -> None:
        """Makes all from `start` on zero without looking at it, and gives its room back.

        Raises:
            OSError: the disk refuses it.
        """
        ...

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) can be read without waiting; true where nobody knows."""
        ...

    async def load(self, start: int, end: int) -> None:
        """Brings bytes [start, end) into memory, in the background.

        Raises:
            OSError: the disk failed.
        """
        ...

    def fault(self) -> str | None:
        """What became of the file under its name, in words; None if it is as it should be."""
        ...

    async def put_back(self) -> None:
        """Writes the file anew, if it was removed: under its name, or with `.lost` behind it if
        there is another now. It is on the disk when this returns.

        Raises:
            OSError: the disk refuses it.
        """
        ...

    def close(self) -> None:
        """Unmaps the file. Readers that still hold a slice keep it alive until they let go."""
        ...


class DirectoryLock(Protocol):
    """Held while a process owns a directory."""

    @property
    def is_held(self) -> bool:
        """Whether it still keeps others out: nobody has taken its file away."""
        ...

    def release(self) -> None:
        """Gives the directory back."""
        ...


class Disk(Protocol):
    """Files and folders. Paths are plain text with `/`; relative to nothing."""

    def make_directory(self, path: str) -> None:
        """Makes a folder with all its parents; no error if it is there."""
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
            OSError: no room, no permission, or the file has another size.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """A whole file, or None if there is none."""
        ...

    def peek(self, path: str) -> memoryview:
        """A file's bytes for reading only, without copying it; what others write shows.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        ...

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """Writes a small state file so that a crash leaves the old or the new one, never a mix.

        New file, sync, rename, folder sync; the version before is kept as `path.bak` if `backup`.
        """
        ...

    def move(self, source: str, target: str) -> None:
        """Gives a file or folder another name, in a folder that is there; both folders synced.

        Raises:
            OSError: there is none, or the target is on another disk or not empty.
        """
        ...

    def remove(self, path: str) -> None:
        """Removes a file; no error if it is missing."""
        ...

    def usage(self, path: str) -> float:
        """How full the file system of `path` is, in [0, 1]."""
        ...

    def lock(self, directory: str) -> DirectoryLock:
        """Takes a folder for this process.

        Raises:
            DirectoryInUse: another process has it.
        """
        ...
