"""The machine's disk: mapped files, state files replaced whole, folders locked.

A mapped file is sparse until written. When a file system runs full under a mapping, the kernel ends
the process instead of raising an error, so zeros are written ahead by plain calls, which raise it.
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

from sprocket.base.errors import DirectoryInUse
from sprocket.runtime.lock import FileLock
from sprocket.runtime.residency import address_of, is_resident

_PAGE = mmap.ALLOCATIONGRANULARITY
#: So much is zeroed in one call: some 200 µs.
_ZEROS = bytes(1 << 18)
#: So much is read in one call.
_LOADED = 1 << 18


class SystemMappedFile:
    """One file of the file system, mapped whole and shared."""

    __slots__ = (
        "_address",
        "_buffer",
        "_busy",
        "_closed",
        "_descriptor",
        "_gate",
        "_is_new",
        "_map",
        "_path",
        "_taken_to",
    )  # fmt: skip

    def __init__(self, path: str, descriptor: int, size: int, *, is_new: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._map = mmap.mmap(descriptor, size)
        self._address = address_of(self._map)
        self._buffer = memoryview(self._map)
        #: Its name in the folder is not known to be on the disk yet.
        self._is_new = is_new
        self._closed = False
        #: Calls in threads; the map and the descriptor outlive them.
        self._busy = 0
        #: Held while zeros are written; `prepare` in its thread stays behind `_taken_to`.
        self._gate = threading.Lock()
        self._taken_to = 0

    @property
    def path(self) -> str:
        """The path it was mapped under."""
        return self._path

    @property
    def buffer(self) -> memoryview:
        """The whole file, writable. Slices of it stay valid until `close`."""
        return self._buffer

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end), and the file's name, are on the disk.

        Raises:
            OSError: the disk failed. What was written since the last good sync is unknown.
        """
        await self._in_thread(self._sync, start, end)

    async def _in_thread(self, work: Callable[[int, int], None], start: int, end: int) -> None:
        self._busy += 1
        running = asyncio.get_running_loop().run_in_executor(None, work, start, end)
        running.add_done_callback(self._is_done)
        await asyncio.shield(running)  # a thread is not cancelled: the file stays open for it

    def _is_done(self, _: object) -> None:
        self._busy -= 1
        if self._closed:
            self._release()

    def _sync(self, start: int, end: int) -> None:
        if sys.platform == "linux":
            # Writes mapped pages too, and lets other threads run meanwhile: `mmap.flush` does not.
            os.fdatasync(self._descriptor)
        else:
            first = start - start % _PAGE
            self._map.flush(first, min(end, len(self._map)) - first)
            os.fsync(self._descriptor)
        if self._is_new:
            sync_directory(os.path.dirname(self._path))
            self._is_new = False

    def zero(self, start: int, end: int) -> None:
        """Makes bytes [start, end) zero and gives them room on the disk, at once.

        Raises:
            OSError: there is no room.
        """
        with self._gate:
            self._taken_to = max(self._taken_to, end)
            while start < end:
                start = self._zero_some(start, end)
        self._fill_page(end)

    async def prepare(self, start: int, end: int) -> None:
        """Like `zero`, in the background. What `zero` reaches meanwhile belongs to the caller.

        Raises:
            OSError: there is no room; some of the bytes may have got theirs.
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
        """Gives the rest of the page before `end` room too: it is written to the disk whole, and
        the blocks of some file systems are smaller."""
        if end % _PAGE:
            self.reserve(end, end + 1)

    def _zero_some(self, start: int, end: int) -> int:
        """Writes zeros at `start`; returns where they end."""
        zeros = memoryview(_ZEROS)[: end - start]
        if sys.platform == "win32":
            self._map[start : start + len(zeros)] = zeros
            return start + len(zeros)
        return start + os.pwrite(self._descriptor, zeros, start)

    def reserve(self, start: int, end: int) -> None:
        """Gives the pages of bytes [start, end) room on the disk, and leaves what they are.

        Where the system has no call for it, on macOS and Windows, it does nothing.

        Raises:
            OSError: there is no room.
        """
        if hasattr(os, "posix_fallocate"):
            start -= start % _PAGE
            end = min(end + -end % _PAGE, len(self._map))
            os.posix_fallocate(self._descriptor, start, end - start)

    def clear_from(self, start: int) -> None:
        """Makes all from `start` on zero without looking at it, and gives its room back.

        Raises:
            OSError: the disk refuses it.
        """
        size = len(self._map)
        if sys.platform == "win32":  # no file is cut there while it is mapped
            self.zero(start, size)
            return
        self._taken_to = min(self._taken_to, start)
        os.ftruncate(self._descriptor, start)
        os.ftruncate(self._descriptor, size)

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) can be read without waiting; true except on Linux."""
        return is_resident(self._address, start, end)

    async def load(self, start: int, end: int) -> None:
        """Brings bytes [start, end) into memory, in the background.

        Raises:
            OSError: the disk failed.
        """
        await self._in_thread(self._load, start, end)

    def _load(self, start: int, end: int) -> None:
        if sys.platform == "win32":  # it is never asked there: nobody knows what is in memory
            return
        # Read and thrown away: what a read brings into memory, the mapping shows.
        into = [bytearray(min(end - start, _LOADED))]
        while start < end:
            done = os.preadv(self._descriptor, into, start)
            if not done:
                return
            start += done

    def fault(self) -> str | None:
        """What became of the file under its name, in words; None if it is as it should be."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return "was removed"
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            return "was replaced"
        return None if found.st_size == len(self._map) else "was given another size"

    async def put_back(self) -> None:
        """Writes the file anew, if it was removed: under its name, or with `.lost` behind it if
        there is another now. It is on the disk when this returns.

        Raises:
            OSError: the disk refuses it.
        """
        if not os.fstat(self._descriptor).st_nlink:
            await self._in_thread(self._put_back, 0, len(self._map))

    def _put_back(self, start: int, end: int) -> None:
        directory = os.path.dirname(self._path)
        os.makedirs(directory, exist_ok=True)
        path = f"{self._path}.lost" if os.path.exists(self._path) else self._path
        with open(path, "xb") as file:
            for at in range(start, end, _LOADED):
                part = self._map[at : at + _LOADED]
                if any(part):
                    file.seek(at)
                    file.write(part)
            file.truncate(end)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(directory)

    def close(self) -> None:
        """Unmaps the file. Readers that still hold a slice keep it alive until they let go."""
        if not self._closed:
            self._closed = True
            self._release()

    def _release(self) -> None:
        if self._busy or self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        self._buffer.release()
        with contextlib.suppress(BufferError):  # slices are out: the last of them unmaps it
            self._map.close()


class SystemDisk:
    """A `Disk` on the machine's file systems."""

    __slots__ = ()

    def make_directory(self, path: str) -> None:
        """Makes a folder with all its parents; no error if it is there."""
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

        An empty file is what a crash leaves between making a file and giving it its size.

        Raises:
            OSError: no room, no permission, or the file has another size.
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
        except BaseException:  # whatever it was, it goes on up; only the descriptor stays here
            os.close(descriptor)
            raise

    def read(self, path: str) -> bytes | None:
        """A whole file, or None if there is none."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def peek(self, path: str) -> memoryview:
        """A file's bytes for reading only, mapped; what others write shows.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        """Writes a small state file so that a crash leaves the old or the new one, never a mix.

        New file, sync, rename, folder sync; the version before is kept as `path.bak` if `backup`.
        """
        draft = f"{path}.tmp"
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if backup and os.path.exists(path):
            _keep_as(path, f"{path}.bak")
        os.replace(draft, path)
        sync_directory(os.path.dirname(path))

    def move(self, source: str, target: str) -> None:
        """Gives a file or folder another name, in a folder that is there; both folders synced.

        Raises:
            OSError: there is none, or the target is on another disk or not empty.
        """
        os.replace(source, target)
        for path in (target, source):
            sync_directory(os.path.dirname(path))

    def remove(self, path: str) -> None:
        """Removes a file; no error if it is missing."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def usage(self, path: str) -> float:
        """How full the file system of `path` is for ordinary users, in [0, 1], as `df` counts."""
        usage = shutil.disk_usage(path)
        return usage.used / (usage.used + usage.free)

    def lock(self, directory: str) -> FileLock:
        """Takes a folder for this process, by its file `lock`, as RocketMQ does.

        Raises:
            DirectoryInUse: another process has it.
        """
        path = os.path.join(directory, "lock")
        lock = FileLock.take(path)
        if lock is None:
            raise DirectoryInUse(f"{directory} is in use by another process (it holds {path})")
        return lock


def _keep_as(path: str, backup: str) -> None:
    """Gives a file a second name, so that the first one is never missing."""
    link = f"{backup}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.remove(link)
    try:
        os.link(path, link)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, link)
    os.replace(link, backup)


def sync_directory(path: str) -> None:
    """Makes names in a folder durable. Windows has no such call and does it by itself."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
