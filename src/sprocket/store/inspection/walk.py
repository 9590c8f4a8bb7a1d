"""Reads a log, whether a broker has it open or not, and changes nothing.

Gives every whole record in order, and between them every damaged part: with its file, its place,
what is wrong, and where the next whole record begins. The log ends behind the last whole record,
and the bytes there are the tail, not damage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import Disk, FileBytes
from sprocket.message.offsets import LONG_MAX
from sprocket.message.record import Record
from sprocket.store.log.damage import Damage
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.log.whole import checked, is_blank, next_whole, written_to
from sprocket.store.views.record_batch import RecordBatch
from sprocket.store.views.replay import RecordScanner
from sprocket.store.views.tag_codes import TAGS_ONLY

T = TypeVar("T")


class LogTail(NamedTuple):
    """Where the log ends.

    Attributes:
        path: the file with the end; empty without files.
        position: byte of the file.
        end: log offset.
        rest_bytes: bytes from there to the last one that is not zero.
        why: why they are no record; empty if `rest_bytes` is 0.
    """

    path: str
    position: int
    end: int
    rest_bytes: int
    why: str


class LogFiles:
    """The files of a log, for reading only.

    Args:
        paths: its folders.
        file_bytes: size of a file; None: the most common size of the files.

    Attributes:
        starts: log offsets at which the files begin, rising.
        odd: path and size of files of another size.
    """

    def __init__(self, disk: Disk, paths: Sequence[str], file_bytes: int | None = None) -> None:
        self._disk = disk
        found = {
            int(name): f"{path}/{name}"
            for path in paths
            for name in disk.names(path)
            if len(name) == NAME_DIGITS and name.isascii() and name.isdigit()
        }
        sizes = {start: disk.size(path) or 0 for start, path in found.items()}
        self.file_bytes = file_bytes or _most_common(size for size in sizes.values() if size)
        self.odd = [(found[s], sizes[s]) for s in sorted(found) if sizes[s] != self.file_bytes]
        self.starts = sorted(s for s in found if sizes[s] == self.file_bytes)
        self._paths = found
        self._folder = paths[0]
        self._open: tuple[int, FileBytes] = (-1, b"")

    @property
    def start(self) -> int:
        """Log offset of the first byte."""
        return self.starts[0] if self.starts else 0

    def path_of(self, start: int) -> str:
        """The path of the file that begins at a log offset, whether it exists or not."""
        return self._paths.get(start, f"{self._folder}/{start:0{NAME_DIGITS}d}")

    def file(self, start: int) -> FileBytes:
        """The content of the file that begins at a log offset.

        Raises:
            OffsetOutOfRange: there is none.
        """
        if self._open[0] != start:
            if start not in self._paths:
                raise OffsetOutOfRange(f"no file begins at log offset {start}")
            try:
                self._open = (start, self._disk.peek(self._paths[start]))
            except FileNotFoundError as error:  # a broker has removed it since
                raise OffsetOutOfRange(f"{self._paths[start]} is gone") from error
        return self._open[1]

    def record_at(self, log_offset: int, *, checks_body: bool = True) -> Record:
        """The whole record that begins at a log offset.

        Raises:
            OffsetOutOfRange: no file holds it.
            CorruptRecord: no whole record begins there.
        """
        place = log_offset % self.file_bytes if self.file_bytes else 0
        file = self.file(log_offset - place)
        return checked(file, place, log_offset, checks_body=checks_body)


def _most_common(sizes: Iterator[int]) -> int:
    found = Counter(sizes).most_common(1)
    return found[0][0] if found else 0


def walk(
    files: LogFiles, *, until: int | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[Record | Damage | LogTail]:
    """All records and all damage, in order; a `LogTail` comes last.

    Args:
        until: log offset behind which nothing is read; None: to the end.
        advance: is called with the number of bytes just read.
    """
    return _walk(files, _record, until=until, advance=advance)


def walk_entries(
    files: LogFiles, *, until: int | None = None, advance: Callable[[int], None] | None = None
) -> Iterator[RecordBatch | Damage | LogTail]:
    """As `walk`, but gives what views receive of consecutive records, instead of the records.

    Tag codes of delayed messages are the hashes of their tags.
    """
    records = RecordScanner(TAGS_ONLY, checks_bodies=True)

    def take(file: FileBytes, start: int, at: int, until: int) -> tuple[RecordBatch, int]:
        return records.take(file, start, at, until=until)

    return _walk(files, take, until=until, advance=advance)


#: Is called with a file, the log offset of its first byte, a place in it and a log offset; reads
#: from that place on records that begin before the log offset. Returns them and the place behind
#: them. Raises `CorruptRecord` if no whole record begins at the place.
_Take = Callable[[FileBytes, int, int, int], tuple[T, int]]


def _record(file: FileBytes, start: int, at: int, until: int) -> tuple[Record, int]:
    record = checked(file, at, start + at)
    return record, at + record.size


def _walk(
    files: LogFiles,
    take: _Take[T],
    *,
    until: int | None,
    advance: Callable[[int], None] | None,
) -> Iterator[T | Damage | LogTail]:
    """All results of `take` and all damage, in order; a `LogTail` comes last.

    Args:
        take: reads records.
        until: log offset behind which nothing is read; None: to the end.
        advance: is called with the number of bytes just read.
    """
    limit = LONG_MAX if until is None else until
    #: A place without a whole record at it or behind it in its file; the log may end there.
    open_end: LogTail | None = None
    missing: list[Damage] = []
    expected = files.start
    for start in files.starts:
        if start >= limit:
            break
        missing += _missing(files, expected, start)
        for each in _file(files, take, start, limit):
            if isinstance(each, LogTail):
                open_end = open_end or each
                continue
            if open_end is not None:
                yield _closed(files, open_end)
                open_end = None
            yield from missing
            missing = []
            yield each
        expected = start + files.file_bytes
        if advance is not None:
            advance(files.file_bytes)
    at = min(expected, limit)
    place = at % files.file_bytes if files.file_bytes else 0
    yield open_end or LogTail(files.path_of(at - place), place, at, 0, "")


def _missing(files: LogFiles, expected: int, start: int) -> list[Damage]:
    return [
        Damage(files.path_of(at), 0, at, at + files.file_bytes, "the file is missing")
        for at in range(expected, start, files.file_bytes or 1)
    ]


def _closed(files: LogFiles, end: LogTail) -> Damage:
    """The damage for an apparent end with messages in a later file: to the end of its own file."""
    file_end = end.end - end.position + files.file_bytes
    return Damage(end.path, end.position, end.end, file_end, end.why or "there are only zeros")


def _file(
    files: LogFiles, take: _Take[T], start: int, limit: int
) -> Iterator[T | Damage | LogTail]:
    """Records and damage of one file; and a `LogTail` if no more records follow in it."""
    try:
        file = files.file(start)
    except OffsetOutOfRange:
        return
    at = 0
    written = -1
    while start + at < limit and not is_blank(file, at):
        try:
            taken, behind = take(file, start, at, limit)
        except CorruptRecord as error:
            if written < 0:
                written = written_to(file, at)
            rest = max(written - at, 0)
            found = next_whole(file, start, at) if rest else None
            if found is None:
                why = str(error) if rest else ""
                yield LogTail(files.path_of(start), at, start + at, rest, why)
                return
            end = found.log_offset
            yield Damage(files.path_of(start), at, start + at, end, str(error))
            at = end - start
            continue
        yield taken
        at = behind
