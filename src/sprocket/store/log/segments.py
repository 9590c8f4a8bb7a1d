"""Segments: files of one size, one after the other, that together hold one long run of bytes.

Each file is named after the offset of its first byte, 20 digits, and is mapped into memory when it
is first needed. Callers use offsets in the whole run; a `Segment` converts them to places in it.

Source of names and sizes: MappedFileQueue and UtilAll.offset2FileName of RocketMQ 5.x.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from sprocket.base.errors import ConfigError, DiskFull, OffsetOutOfRange, StoreError
from sprocket.base.ports import Disk, FileBytes, MappedFile

NAME_DIGITS = 20

_CHUNK = 1 << 16
_ZEROS = bytes(_CHUNK)
#: No page of memory is smaller.
_PAGE = 1 << 12


class Segment:
    """One mapped file.

    Attributes:
        start: offset of its first byte in the whole run.
        end: offset after its last byte.
        buffer: its bytes. Slices stay valid after the file has been closed or removed.
        prepared_to: offset up to which it is known to have room on the disk; kept only for files
            that are written in order.
    """

    __slots__ = ("buffer", "end", "file", "prepared_to", "start")

    def __init__(self, start: int, file: MappedFile) -> None:
        self.start = start
        self.prepared_to = start
        self.file = file
        self.buffer = file.buffer
        self.end = start + len(self.buffer)

    def prepare_to(self, end: int) -> None:
        """Makes sure of room on the disk up to an offset, by writing zeros.

        Raises:
            DiskFull: there is no room.
            StoreError: the disk refuses it.
        """
        if end > self.prepared_to:
            try:
                self.file.zero(self.prepared_to - self.start, end - self.start)
            except OSError as error:
                raise refused(f"cannot write to {self.file.path}", error) from error
            self.prepared_to = end

    async def prepare_ahead(self, start: int, end: int) -> None:
        """As `prepare_to`, in the background, for bytes [start, end); before them all is prepared.

        Raises:
            DiskFull, StoreError: as `prepare_to`.
        """
        try:
            await self.file.prepare(start - self.start, end - self.start)
        except OSError as error:
            raise refused(f"cannot write to {self.file.path}", error) from error
        self.prepared_to = max(self.prepared_to, end)

    def reserve(self, start: int, end: int) -> None:
        """Makes sure of room on the disk for bytes [start, end) of the run; keeps what they hold.

        Raises:
            DiskFull: there is no room.
            StoreError: the disk refuses it.
        """
        try:
            self.file.reserve(start - self.start, end - self.start)
        except OSError as error:
            raise refused(f"cannot write to {self.file.path}", error) from error

    def clear(self, start: int, end: int) -> None:
        """Makes bytes [start, end) of the run zero; writes only the parts that are not."""
        last = end - self.start
        for first in range(start - self.start, last, _CHUNK):
            end_of_part = min(first + _CHUNK, last)
            if bytes(self.file[first:end_of_part]) != _ZEROS[: end_of_part - first]:
                self._clear_some(first, end_of_part)

    def _clear_some(self, start: int, end: int) -> None:
        """Makes bytes [start, end) of the file zero; writes only pages that have disk space."""
        for first in range(start, end, _PAGE):
            page = self.file[first : min(first + _PAGE, end)]
            if any(page):
                self.buffer[first : first + len(page)] = _ZEROS[: len(page)]


class OddFile(NamedTuple):
    """A file of another size than its run has.

    Attributes:
        path: where it is.
        start: offset of its first byte in the run.
        size: its size in bytes.
    """

    path: str
    start: int
    size: int


class Segments:
    """The files of one run, in order of their offsets, each `file_bytes` long.

    They are in one folder, or in several; then `home` chooses the folder of a new one.
    """

    __slots__ = (
        "_disk", "_folders", "_home", "_is_read_ahead", "_mapped", "_on_map", "_others", "_setting",
        "directory", "file_bytes", "odd", "starts",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        directory: str,
        file_bytes: int,
        *,
        setting: str,
        others: Sequence[str] = (),
        home: Callable[[int], str] | None = None,
        on_map: Callable[[], None] | None = None,
    ) -> None:
        """
        Args:
            setting: the name of the setting for the file size, for the error.
            others: folders besides the first one.
            home: gives the folder for a new file by its number; None: the first folder.
            on_map: is called before a file is mapped; must not touch the files of this folder.
        """
        self._disk = disk
        self._setting = setting
        self._others = others
        self._home = home
        self._on_map = on_map
        self.directory = directory
        self.file_bytes = file_bytes
        #: Folders of files that are not in the first one.
        self._folders: dict[int, str] = {}
        #: Offsets of the files that exist, rising.
        self.starts: list[int] = []
        #: Files of another size, in the same order; they are not part of the run.
        self.odd: list[OddFile] = []
        self._mapped: dict[int, Segment] = {}
        self._is_read_ahead = True

    def read_ahead(self, is_on: bool) -> None:
        """Whether the system reads more of the files than is asked for."""
        if is_on != self._is_read_ahead:
            self._is_read_ahead = is_on
            for segment in self._mapped.values():
                segment.file.read_ahead(is_on)

    def load(self) -> None:
        """Finds the files that exist. An empty one, left by a crash, is removed.

        Those of another size are in `odd`: the caller decides what they mean.

        Raises:
            ConfigError: a file is in two folders.
            OSError: the disk failed.
        """
        for folder in (self.directory, *self._others):
            for name in self._disk.names(folder):
                if len(name) == NAME_DIGITS and name.isascii() and name.isdigit():
                    self._admit(folder, name)
        self.starts.sort()
        self.odd.sort(key=lambda odd: odd.start)

    def _admit(self, folder: str, name: str) -> None:
        path = f"{folder}/{name}"
        size = self._disk.size(path)
        if not size:
            self._disk.remove(path)
            return
        start = int(name)
        if size != self.file_bytes or start % self.file_bytes:
            self.odd.append(OddFile(path, start, size))
            return
        if start in self.starts:
            raise ConfigError(f"{path} is also {self.path_of(start)}: one of them is too many")
        self.starts.append(start)
        if folder != self.directory:
            self._folders[start] = folder

    def refuse(self, odd: OddFile) -> NoReturn:
        """Refuses a file that was made with another setting.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"{odd.path} has {odd.size} bytes, but {self._setting} is {self.file_bytes}: "
            "a store keeps the file sizes it was made with"
        )

    def peek(self, odd: OddFile) -> FileBytes:
        """The bytes of a file of another size.

        Raises:
            OSError: the disk failed.
        """
        return self._disk.peek(odd.path)

    def drop(self, odd: OddFile) -> None:
        """Removes a file of another size."""
        self._disk.remove(odd.path)
        self.odd.remove(odd)

    def lengthen(self, odd: OddFile) -> None:
        """Gives a file that is too short its right size, with zeros behind; it joins the run.

        Raises:
            OSError: the disk refuses it.
        """
        self._disk.lengthen(odd.path, self.file_bytes)
        self.odd.remove(odd)
        self._admit(*odd.path.rsplit("/", 1))
        self.starts.sort()

    @property
    def start(self) -> int:
        """Offset of the first byte there is; 0 without files."""
        return self.starts[0] if self.starts else 0

    @property
    def limit(self) -> int:
        """Offset after the last file; 0 without files."""
        return self.starts[-1] + self.file_bytes if self.starts else 0

    def has(self, offset: int) -> bool:
        """Whether a file holds that offset."""
        return offset - offset % self.file_bytes in self._mapped or self._is_there(offset)

    def _is_there(self, offset: int) -> bool:
        return offset - offset % self.file_bytes in self.starts

    def at(self, offset: int) -> Segment:
        """The file that holds an offset.

        Raises:
            OffsetOutOfRange: there is none.
        """
        segment = self._mapped.get(offset - offset % self.file_bytes)
        if segment is not None:
            return segment
        if not self._is_there(offset):
            raise OffsetOutOfRange(f"no file in {self.directory} holds offset {offset}")
        return self._map(offset - offset % self.file_bytes)

    def make(self, offset: int) -> Segment:
        """The file that holds an offset; if it is missing it is made, and must follow the last one.

        Raises:
            DiskFull: there is no room for it.
            StoreError: the disk refuses it.
        """
        start = offset - offset % self.file_bytes
        if self._is_there(offset):
            return self.at(offset)
        try:
            if self._home is not None:
                self._folders[start] = self._home(start // self.file_bytes)
            if self._home is not None or not self.starts:
                self._disk.make_directory(self._folders.get(start, self.directory))
        except OSError as error:
            raise refused(f"cannot make the folder of {self.path_of(start)}", error) from error
        segment = self._map(start)
        self.starts.append(start)
        self.starts.sort()
        return segment

    def path_of(self, start: int) -> str:
        """The path of the file that begins at an offset, whether it exists or not."""
        return f"{self._folders.get(start, self.directory)}/{start:0{NAME_DIGITS}d}"

    def _map(self, start: int) -> Segment:
        path = self.path_of(start)
        if start in self.starts and not self._disk.size(path):
            raise StoreError(f"{path} is gone")  # mapping it would make an empty file
        if self._on_map is not None:
            self._on_map()
        try:
            file = self._disk.map(path, self.file_bytes)
        except OSError as error:
            raise refused(f"cannot map {path}", error) from error
        if not self._is_read_ahead:
            file.read_ahead(False)
        segment = self._mapped[start] = Segment(start, file)
        return segment

    def faults(self) -> list[tuple[MappedFile, str]]:
        """Mapped files that another process has removed or changed, each with what happened."""
        found = [(segment.file, segment.file.fault()) for segment in self._mapped.values()]
        return [(file, fault) for file, fault in found if fault]

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) are on the disk, as far as there are files for them.

        Raises:
            OSError: the disk failed.
        """
        for first in list(self.starts):
            last = first + self.file_bytes
            if first < end and last > start and first in self.starts:  # or removed meanwhile
                file = self.at(first).file
                await file.sync(max(start, first) - first, min(end, last) - first)

    def remove_before(self, offset: int) -> None:
        """Removes the files that end at or before an offset."""
        for start in [s for s in self.starts if s + self.file_bytes <= offset]:
            self._remove(start)

    def remove_from(self, offset: int) -> None:
        """Removes the files that begin at or after an offset."""
        for start in [s for s in self.starts if s >= offset]:
            self._remove(start)

    def _remove(self, start: int) -> None:
        self.starts.remove(start)
        segment = self._mapped.pop(start, None)
        if segment is not None:
            segment.file.close()
        self._disk.remove(self.path_of(start))
        self._folders.pop(start, None)

    def unmap_others(self, offset: int) -> None:
        """Unmaps all files but the one that holds an offset."""
        kept = offset - offset % self.file_bytes
        for start in [start for start in self._mapped if start != kept]:
            self._mapped.pop(start).file.close()

    def unmap_all(self) -> None:
        """Unmaps all files; they are mapped again when they are needed."""
        for segment in self._mapped.values():
            segment.file.close()
        self._mapped.clear()

    def close(self) -> None:
        """Unmaps all files for good."""
        self.unmap_all()
        self.starts.clear()


def shows_other_size(odd: Sequence[OddFile], *, has_right: bool, unit: int = 1) -> bool:
    """Whether files of another size show that the setting was changed, and not that they are cut.

    Args:
        odd: these files.
        has_right: whether there are files of the right size as well.
        unit: files hold whole units of so many bytes.
    """
    sizes = {each.size for each in odd}
    return (
        not has_right
        and len(sizes) == 1
        and all(each.size % unit == 0 and each.start % each.size == 0 for each in odd)
    )


def refused(text: str, error: OSError) -> StoreError:
    """The store's error for an error of the disk: `DiskFull` if there is no room."""
    kind = DiskFull if is_no_room(error) else StoreError
    return kind(f"{text}: {error}")


def is_no_room(error: OSError) -> bool:
    """Whether an error means that the disk, or a quota, is full."""
    return error.errno in _NO_ROOM


#: ENOSPC and EDQUOT; their numbers are the same wherever there is a quota.
_NO_ROOM = (28, 122)


def is_out_of_files(error: BaseException) -> bool:
    """Whether an error means that the process, or the system, has as many open or mapped files as
    it may. That is no fault of the disk, and passes."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _NO_FILES


_NO_FILES = (errno.ENOMEM, errno.ENFILE, errno.EMFILE)
