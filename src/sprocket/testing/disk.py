"""Disks in memory, with the effects of crashes on them.

After a kill all written bytes are there, also those in mapped files, since the kernel has them.
After a loss of power the synced bytes are there, and a choice by seed of the others. The next
process gets a new disk, so that it does not see what cancelled tasks of the old one still write.
"""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath

from sprocket.base.errors import DirectoryInUse
from sprocket.base.ports import Rotation
from sprocket.testing.disk_content import SimulatedFile, clear
from sprocket.testing.entropy import SeededEntropy


class MemoryMappedFile:
    """A `MappedFile` of a `MemoryDisk`."""

    __slots__ = ("_buffer", "_disk", "_file", "_path", "_taken_to")

    def __init__(self, path: str, file: SimulatedFile, disk: MemoryDisk) -> None:
        self._path = path
        self._file = file
        self._disk = disk
        self._buffer = memoryview(file.live)[: file.size]
        self._taken_to = 0

    @property
    def path(self) -> str:
        """The path under which it was mapped."""
        return self._path

    def __len__(self) -> int:
        """Bytes in the file."""
        return self._file.size

    def __getitem__(self, part: slice) -> bytes:
        """A copy of bytes of the file, also of those that have no disk space yet."""
        start, end, _ = part.indices(self._file.size)
        return self._file.live[start:end]

    @property
    def buffer(self) -> memoryview:
        """The whole file, writable. Slices of it stay valid until `close`."""
        return self._buffer

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) would survive a loss of power.

        Raises:
            OSError: the disk is set to fail.
        """
        await self._disk.before_sync(self._path)
        self._file.sync(start, end)

    def zero(self, start: int, end: int) -> None:
        """Sets bytes [start, end) to zero and reserves space for them.

        Raises:
            OSError: the disk is set to be full.
        """
        self._disk.before_zero(self._path)
        clear(self._file.live, start, end)
        self._taken_to = max(self._taken_to, end)

    async def prepare(self, start: int, end: int) -> None:
        """Like `zero`, but later; leaves bytes that `zero` has reached meanwhile.

        Raises:
            OSError: the disk is set to be full.
        """
        await asyncio.sleep(0)
        self._disk.before_zero(self._path)
        clear(self._file.live, max(start, self._taken_to), end)

    def reserve(self, start: int, end: int) -> None:
        """Reserves space for bytes [start, end), and does not change them."""
        self._disk.before_zero(self._path)

    def clear_from(self, start: int) -> None:
        """Sets all bytes from `start` on to zero."""
        clear(self._file.live, start, self._file.size)
        self._file.cleared_from = min(self._file.cleared_from, start)
        self._taken_to = min(self._taken_to, start)

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) can be read without waiting."""
        cold = self._disk.cold.get(self._path)
        return cold is None or not (start < cold.stop and cold.start < end)

    async def load(self, start: int, end: int) -> None:
        """Brings bytes [start, end), and cold ones before them, into memory."""
        await self._disk.before_sync(self._path)
        cold = self._disk.cold.get(self._path)
        if cold is not None:
            self._disk.cold[self._path] = range(max(cold.start, end), cold.stop)

    def read_ahead(self, is_on: bool) -> None:
        """Notes what is asked for: memory is not read ahead."""
        self._disk.read_ahead[self._path] = is_on

    def fault(self) -> str | None:
        """What is wrong with the file at its path; None if nothing is."""
        return None if self._disk.size(self._path) is not None else "was removed"

    async def put_back(self) -> None:
        """Restores the file at its path if it was removed."""
        self._disk._files.setdefault(self._path, self._file)

    def close(self) -> None:
        """Closes the file. Existing slices stay readable."""
        self._buffer.release()


class MemoryLock:
    """A `DirectoryLock` of a `MemoryDisk`."""

    __slots__ = ("_directory", "_locked")

    def __init__(self, directory: str, locked: set[str]) -> None:
        self._directory = directory
        self._locked = locked
        locked.add(directory)

    is_held = True

    def release(self) -> None:
        """Releases the folder."""
        self._locked.discard(self._directory)


class MemoryDisk:
    """A `Disk` whose files exist as long as the object, so a test can restart a process on it."""

    def __init__(self) -> None:
        self._files: dict[str, SimulatedFile] = {}
        self._directories: set[str] = {"/", ""}
        self._locked: set[str] = set()
        #: By path, the range of a file's bytes that is not in memory.
        self.cold: dict[str, range] = {}
        #: By path, whether a mapped file is read ahead, where it was asked for.
        self.read_ahead: dict[str, bool] = {}
        #: As many as some processes have.
        self.open_files_max = 1024
        #: The result of `usage`, unless there is a capacity.
        self.usage_ratio = 0.1
        #: Most bytes of all files together; 0 for no limit.
        self.capacity_bytes = 0

    def after_kill(self) -> MemoryDisk:
        """The disk for the next process after a kill now. Do not use this one any more."""
        return self._next({path: file.copy() for path, file in self._files.items()})

    def _next(self, files: dict[str, SimulatedFile]) -> MemoryDisk:
        disk = type(self).__new__(type(self))
        disk.__dict__.update(self.__dict__)
        disk._files = files
        disk._directories = set(self._directories)
        disk._locked = set()
        return disk

    def make_directory(self, path: str) -> None:
        """Creates a folder with all its parents; no error if it exists."""
        path = posixpath.normpath(path)
        while path not in self._directories:
            self._directories.add(path)
            path = posixpath.dirname(path)

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty if there is no such folder."""
        path = posixpath.normpath(path)
        prefix = path if path == "/" else f"{path}/"
        start = len(prefix)
        inside = {p[start:] for p in (*self._files, *self._directories) if p.startswith(prefix)}
        return sorted(name for name in inside if name and "/" not in name)

    def size(self, path: str) -> int | None:
        """Size of a file in bytes; None if there is none."""
        file = self._files.get(posixpath.normpath(path))
        return None if file is None else file.size

    def map(self, path: str, size: int) -> MemoryMappedFile:
        """Maps a file of `size` bytes; creates it, zero-filled, if it is missing or empty.

        Raises:
            OSError: no space, no folder, or the file has another size.
        """
        path = self._inside_directory(path)
        file = self._files.get(path)
        if file is None or not file.size:
            if self.capacity_bytes and self._used_bytes() + size > self.capacity_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            file = self._files[path] = SimulatedFile(size)
        if file.size != size:
            raise OSError(f"{path} has {file.size} bytes, expected {size}")
        return MemoryMappedFile(path, file, self)

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if there is none."""
        file = self._files.get(posixpath.normpath(path))
        return None if file is None else file.content()

    def peek(self, path: str) -> MemoryMappedFile:
        """A file's bytes, for reading only; they show later writes.

        Raises:
            OSError: there is no such file.
        """
        file = self._files.get(posixpath.normpath(path))
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return MemoryMappedFile(path, file, self)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """Replaces a small state file; keeps the version before as `path.bak`."""
        path = self._inside_directory(path)
        if backup and path in self._files:
            self._files[f"{path}.bak"] = self._files[path]
        self._files[path] = SimulatedFile.holding(content)

    def replace_secret(self, path: str, content: bytes) -> None:
        """As `replace`, without a backup."""
        self.replace(path, content, backup=False)

    def lengthen(self, path: str, size: int) -> None:
        """Gives a file that is shorter this size; the new bytes are zero."""
        content = self._files[posixpath.normpath(path)].content()
        self._files[posixpath.normpath(path)] = SimulatedFile.holding(content.ljust(size, b"\0"))

    async def replace_in_background(self, path: str, content: bytes, *, backup: bool) -> None:
        """As `replace`, a turn of the loop later."""
        await asyncio.sleep(0)
        self.replace(path, content, backup=backup)

    async def append_in_background(self, path: str, content: bytes, rotation: Rotation) -> None:
        """Writes lines to the end of a file, which takes as long as a sync and fails as one.

        Raises:
            OSError: there is no such folder, or no space.
        """
        path = self._inside_directory(path)
        await self.before_sync(path)
        if self.capacity_bytes and self._used_bytes() + len(content) > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if rotation.is_due(self.size(path) or 0, len(content)):
            for old, new in rotation.moves(path):
                if old in self._files:
                    self._files[new] = self._files.pop(old)
        before = self.read(path) or b""
        cut = b"\n" if before and not before.endswith(b"\n") else b""
        self._files[path] = SimulatedFile.holding(before + cut + content)

    def move(self, source: str, target: str) -> None:
        """Renames a file or folder; the target's folder must exist.

        Raises:
            OSError: there is no such file or folder.
        """
        source, target = posixpath.normpath(source), self._inside_directory(target)
        moved = [path for path in self._files if path == source or path.startswith(f"{source}/")]
        if not moved and source not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        for path in moved:
            self._files[target + path[len(source) :]] = self._files.pop(path)
        for path in [each for each in self._directories if f"{each}/".startswith(f"{source}/")]:
            self._directories.discard(path)
            self._directories.add(target + path[len(source) :])

    def remove(self, path: str) -> None:
        """Removes a file; no error if it is missing."""
        self._files.pop(posixpath.normpath(path), None)

    def usage(self, path: str) -> float:
        """The used share, in [0, 1]: of its capacity, or `usage_ratio` without one."""
        most = self.capacity_bytes
        return min(self._used_bytes() / most, 1.0) if most else self.usage_ratio

    def _used_bytes(self) -> int:
        return sum(file.size for file in self._files.values())

    def lock(self, directory: str) -> MemoryLock:
        """Locks a folder.

        Raises:
            DirectoryInUse: it is locked.
        """
        directory = posixpath.normpath(directory)
        if directory in self._locked:
            raise DirectoryInUse(f"{directory} is in use by another process")
        return MemoryLock(directory, self._locked)

    async def before_sync(self, path: str) -> None:
        """Called before bytes of `path` become durable; does nothing here."""

    def before_zero(self, path: str) -> None:
        """Called before space is reserved for `path`; does nothing here."""

    def _inside_directory(self, path: str) -> str:
        path = posixpath.normpath(path)
        if posixpath.dirname(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return path


class FaultyDisk(MemoryDisk):
    """A `MemoryDisk` with slow syncs, failures that a test sets, and loss of power.

    Args:
        seed: decides how long each sync takes, and which sectors survive a loss of power.
        sync_seconds: the shortest and the longest time of a sync; may be changed later.
    """

    def __init__(
        self, seed: int | str = 0, *, sync_seconds: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        super().__init__()
        self._entropy = SeededEntropy(seed)
        self.sync_seconds = sync_seconds
        self._failing: dict[str, tuple[int, int]] = {}

    def fail(self, operation: str, error: int = errno.EIO, *, times: int = 1) -> None:
        """Makes the next `times` calls of an operation raise `OSError(error)`.

        Args:
            operation: `map` (of a new file), `zero` (and other operations that reserve space),
                `sync` or `replace`.
            error: a number of `errno`, such as `errno.ENOSPC`.
            times: how many calls fail; 0 for none any more.
        """
        self._failing[operation] = (error, times)

    def after_power_loss(self) -> MemoryDisk:
        """The disk for the next process after a loss of power now. Do not use this one any more."""
        kept = ((path, file.torn(self._entropy)) for path, file in self._files.items())
        return self._next({path: file for path, file in kept if file is not None})

    def map(self, path: str, size: int) -> MemoryMappedFile:
        """As `MemoryDisk.map`, but the creation of a file may fail."""
        if not self.size(path):
            self._raise_if_failing("map", path)
        return super().map(path, size)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """As `MemoryDisk.replace`, but it may fail, which keeps the old file."""
        self._raise_if_failing("replace", path)
        super().replace(path, content, backup=backup)

    async def before_sync(self, path: str) -> None:
        """Takes the time of a sync, then fails if it is set to."""
        low, high = self.sync_seconds
        if high > 0:
            await asyncio.sleep(self._entropy.between(low, high))
        self._raise_if_failing("sync", path)

    def before_zero(self, path: str) -> None:
        """Fails if it is set to."""
        self._raise_if_failing("zero", path)

    def _raise_if_failing(self, operation: str, path: str) -> None:
        error, times = self._failing.get(operation, (0, 0))
        if times > 0:
            self._failing[operation] = (error, times - 1)
            raise OSError(error, os.strerror(error), path)
