"""The machine's disk: mapped files, atomic replacement of state files, locked folders.

A mapped file is sparse until written. If the file system is full when a mapping is written, the
kernel kills the process. So zeros are written ahead with plain calls, which raise an error instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial

from sprocket.base.errors import DirectoryInUse, StoreError
from sprocket.base.ports import Rotation
from sprocket.runtime.file_bytes import SystemFileBytes
from sprocket.runtime.file_writes import append_lines, sync_directory
from sprocket.runtime.lock import FileLock
from sprocket.runtime.open_files import OpenFiles
from sprocket.runtime.replaced_files import replace_file, replace_secret_file
from sprocket.runtime.residency import address_of, is_resident

_PAGE = mmap.ALLOCATIONGRANULARITY
#: The bytes that one call zeroes, in some 200 µs.
_ZEROS = bytes(1 << 18)
#: The number of bytes that one call reads.
_LOADED = 1 << 18


class SystemMappedFile:
    """One file of the file system, mapped as a whole and shared."""

    __slots__ = (
        "_address", "_buffer", "_busy", "_closed", "_descriptor", "_gate", "_is_new", "_map",
        "_path", "_taken_to",
    )  # fmt: skip

    def __init__(self, path: str, descriptor: int, size: int, *, is_new: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._map = mmap.mmap(descriptor, size)
        self._address = address_of(self._map)
        self._buffer = memoryview(self._map)
        #: Whether its name in the folder may not be on the disk yet.
        self._is_new = is_new
        self._closed = False
        #: The number of calls in threads; map and descriptor stay open until they end.
        self._busy = 0
        #: Held while zeros are written. `prepare` in its thread never writes before `_taken_to`.
        self._gate = threading.Lock()
        self._taken_to = 0

    @property
    def path(self) -> str:
        """The path at which it was mapped."""
        return self._path

    def __len__(self) -> int:
        """Bytes in the file."""
        return len(self._map)

    def __getitem__(self, part: slice) -> bytes:
        """A copy of bytes of the file, also of those that have no disk space yet."""
        start, end, _ = part.indices(len(self._map))
        if sys.platform == "win32":  # it has no such call, and no holes that take space when read
            return self._map[start:end]
        return os.pread(self._descriptor, max(end - start, 0), start)

    @property
    def buffer(self) -> memoryview:
        """The whole file, writable. Slices of it stay valid until `close`."""
        return self._buffer

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end), and the file's name, are on the disk.

        Raises:
            OSError: the disk failed. Which of the bytes since the last good sync it has is unknown.
        """
        await self._in_thread(self._sync, start, end)

    async def _in_thread(self, work: Callable[[int, int], None], start: int, end: int) -> None:
        self._busy += 1
        running = asyncio.get_running_loop().run_in_executor(None, work, start, end)
        running.add_done_callback(self._is_done)
        await asyncio.shield(running)  # a thread cannot be cancelled: the file stays open for it

    def _is_done(self, _: object) -> None:
        self._busy -= 1
        if self._closed:
            self._release()

    def _sync(self, start: int, end: int) -> None:
        if sys.platform == "linux":
            # This writes mapped pages too, and releases the GIL, which `mmap.flush` does not.
            os.fdatasync(self._descriptor)
        else:
            first = start - start % _PAGE
            self._map.flush(first, min(end, len(self._map)) - first)
            os.fsync(self._descriptor)
        if self._is_new:
            sync_directory(os.path.dirname(self._path))
            self._is_new = False

    def zero(self, start: int, end: int) -> None:
        """Fills bytes [start, end) with zeros and allocates disk space for them, at once.

        Raises:
            OSError: there is no free space.
        """
        # The caller writes to these bytes after this call. Raising `_taken_to` under the lock keeps
        # a `prepare` that still runs in its thread from zeroing them again.
        with self._gate:
            while start < end:
                start = self._zero_some(start, end)
                # Only what has its room is taken: after a full disk, `prepare` makes the rest.
                self._taken_to = max(self._taken_to, start)
        self._fill_page(end)

    async def prepare(self, start: int, end: int) -> None:
        """Like `zero`, in the background. The caller may use bytes that `zero` fills meanwhile.

        Raises:
            OSError: there is no free space; some of the bytes may be allocated already.
        """
        await self._in_thread(self._prepare, start, end)

    def _prepare(self, start: int, end: int) -> None:
        while start < end:
            with self._gate:
                start = max(start, self._taken_to)
                if start < end:
                    start = self._zero_some(start, end)
        self._fill_page(end)

    def _fill_page(self, end: int) -> None:
        """Allocates the rest of the last page too: pages are written to the disk as a whole, and
        some file systems have smaller blocks."""
        if end % _PAGE:
            self.reserve(end, end + 1)

    def _zero_some(self, start: int, end: int) -> int:
        """Writes some zeros at `start`; returns the offset after them."""
        zeros = memoryview(_ZEROS)[: end - start]
        if sys.platform == "win32":
            self._map[start : start + len(zeros)] = zeros
            return start + len(zeros)
        return start + os.pwrite(self._descriptor, zeros, start)

    def reserve(self, start: int, end: int) -> None:
        """Allocates disk space for the pages of bytes [start, end) and keeps their values.

        It does nothing on macOS and Windows, which have no such call.

        Raises:
            OSError: there is no free space.
        """
        if hasattr(os, "posix_fallocate"):
            start -= start % _PAGE
            end = min(end + -end % _PAGE, len(self._map))
            os.posix_fallocate(self._descriptor, start, end - start)

    def clear_from(self, start: int) -> None:
        """Makes all bytes from `start` on zero without reading them, and frees their disk space.

        Raises:
            OSError: the system refuses it.
        """
        size = len(self._map)
        if sys.platform == "win32":  # a mapped file cannot be truncated there
            self.zero(start, size)
            return
        self._taken_to = min(self._taken_to, start)
        os.ftruncate(self._descriptor, start)
        os.ftruncate(self._descriptor, size)

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) can be read without waiting; true except on Linux."""
        return is_resident(self._address, start, end)

    async def load(self, start: int, end: int) -> None:
        """Reads bytes [start, end) into memory, in the background.

        Raises:
            OSError: the disk failed.
        """
        await self._in_thread(self._load, start, end)

    def _load(self, start: int, end: int) -> None:
        if sys.platform == "win32":  # never called there, as all counts as in memory
            return
        # The bytes read are thrown away: they are in the page cache then, which the mapping shares.
        into = [bytearray(min(end - start, _LOADED))]
        while start < end:
            done = os.preadv(self._descriptor, into, start)
            if not done:
                return
            start += done

    def read_ahead(self, is_on: bool) -> None:
        """Whether the system reads more of the file than is asked for; without effect except on
        Linux."""
        if sys.platform == "linux":
            self._map.madvise(mmap.MADV_NORMAL if is_on else mmap.MADV_RANDOM)
            advice = os.POSIX_FADV_NORMAL if is_on else os.POSIX_FADV_RANDOM
            os.posix_fadvise(self._descriptor, 0, 0, advice)

    def fault(self) -> str | None:
        """What happened to the file at its path, in words; None if it is unchanged."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return "was removed"
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            return "was replaced"
        return None if found.st_size == len(self._map) else "was given another size"

    async def put_back(self) -> None:
        """Writes the file again if it was removed: at its path, or with the suffix `.lost` if
        another file is there now. It is on the disk when this returns.

        Raises:
            OSError: the system refuses it.
        """
        if not os.fstat(self._descriptor).st_nlink:
            await self._in_thread(self._put_back, 0, len(self._map))

    def _put_back(self, start: int, end: int) -> None:
        directory = os.path.dirname(self._path)
        os.makedirs(directory, exist_ok=True)
        path = f"{self._path}.lost" if os.path.exists(self._path) else self._path
        with open(path, "xb") as file:
            for at in range(start, end, _LOADED):
                part = self[at : min(at + _LOADED, end)]
                if any(part):
                    file.seek(at)
                    file.write(part)
            file.truncate(end)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(directory)

    def close(self) -> None:
        """Unmaps the file. It stays mapped as long as a reader holds a slice of it."""
        if not self._closed:
            self._closed = True
            self._release()

    def _release(self) -> None:
        if self._busy or self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        self._buffer.release()
        with contextlib.suppress(BufferError):  # slices are in use: the last of them unmaps it
            self._map.close()


class SystemDisk(OpenFiles):
    """A `Disk` on the machine's file systems."""

    __slots__ = ()

    def make_directory(self, path: str) -> None:
        """Makes a folder and all its parents; no error if it exists."""
        os.makedirs(path, exist_ok=True)

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty if there is no such folder."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def size(self, path: str) -> int | None:
        """Bytes in a file, or None if there is none."""
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def map(self, path: str, size: int) -> SystemMappedFile:
        """Maps a file of `size` bytes; makes it, zero-filled, if it is missing or empty.

        A crash between creating a file and setting its size leaves an empty one.

        Raises:
            OSError: no free space, no permission, or the file has another size.
        """
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o644)
        try:
            found = os.fstat(descriptor).st_size
            if found not in (0, size):
                raise OSError(f"{path} has {found} bytes, expected {size}")
            if not found:
                os.ftruncate(descriptor, size)
            return SystemMappedFile(path, descriptor, size, is_new=not found)
        except BaseException:  # any error is raised again after the descriptor is closed
            os.close(descriptor)
            raise

    def read(self, path: str) -> bytes | None:
        """A whole file, or None if there is none."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def peek(self, path: str) -> SystemFileBytes:
        """A file's bytes, for reading only; they show what others write.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        return SystemFileBytes(path)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """Writes a small state file so that a crash leaves the old or the new one, never a mix.

        Writes a new file, syncs it, renames it, and syncs the folder. If `backup`, the previous
        version is kept as `path.bak`.
        """
        replace_file(path, content, backup=backup)

    def replace_secret(self, path: str, content: bytes) -> None:
        """As `replace`, without a backup: only the user of this process may read the file."""
        replace_secret_file(path, content)

    def lengthen(self, path: str, size: int) -> None:
        """Gives a file this size; the bytes behind its present end are zero.

        Raises:
            OSError: there is no such file, or the system refuses it.
        """
        os.truncate(path, size)

    async def replace_in_background(self, path: str, content: bytes, *, backup: bool) -> None:
        """As `replace`, in a thread."""
        work = asyncio.get_running_loop().run_in_executor(
            None, partial(self.replace, path, content, backup=backup)
        )
        await asyncio.shield(work)

    async def append_in_background(self, path: str, content: bytes, rotation: Rotation) -> None:
        """Writes lines to the end of a file and syncs it, in a thread.

        Raises:
            OSError: the disk failed or is full; then nothing of them is in the file.
        """
        work = asyncio.get_running_loop().run_in_executor(
            None, append_lines, path, content, rotation
        )
        await asyncio.shield(work)

    def move(self, source: str, target: str) -> None:
        """Renames a file or folder into an existing folder, and syncs both folders.

        Raises:
            OSError: the source is missing, or the target is on another disk or not empty.
        """
        os.replace(source, target)
        for path in (target, source):
            sync_directory(os.path.dirname(path))

    def remove(self, path: str) -> None:
        """Removes a file; no error if it is missing."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def usage(self, path: str) -> float:
        """The used fraction of the file system of `path` for ordinary users, as in `df`."""
        usage = shutil.disk_usage(path)
        return usage.used / (usage.used + usage.free)

    def lock(self, directory: str) -> FileLock:
        """Locks a folder for this process by its file `lock`, as RocketMQ does.

        Raises:
            DirectoryInUse: another process holds the lock.
            StoreError: the file cannot be opened or made.
        """
        path = os.path.join(directory, "lock")
        try:
            lock = FileLock.take(path)
        except OSError as error:
            raise StoreError(f"cannot lock {path}: {error.strerror}") from error
        if lock is None:
            raise DirectoryInUse(f"{directory} is in use by another process (it holds {path})")
        return lock
