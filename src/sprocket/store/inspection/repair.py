"""Repairs a store that no process has open, in ways that an operator chooses.

A repair is a list of steps, which can be shown before they are done. What they remove is kept in
the folder `removed/<time>` of the store, under its old name or its log offset.

To skip damage makes the log whole again for us and for Java: a damaged stretch is replaced by
filler records, which are marked as a rolled-back transaction and so are in no queue. Queue entries
that pointed into it then point to the first filler, with a tag code that makes readers skip them,
so all other messages keep their offsets. (Java does not know that code and delivers the filler.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, StoreError, UsageError
from sprocket.base.ports import FileBytes, MappedFile
from sprocket.message.record import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    FIXED_BYTES,
    ROLLED_BACK,
    Draft,
    Encoder,
    Record,
    topic_part,
)
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.walk import LogTail, walk
from sprocket.store.log.damage import Damage
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.log.whole import written_to
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.views.batch_unit import UNIT_BYTES
from sprocket.store.views.consume_queue import BLANK_SIZE, DAMAGED_CODE, ENTRY, ENTRY_BYTES

#: The topic of filler records, shortened if there is no room for the name.
FILLER_TOPIC = "DAMAGED"

_FILLER_BYTES_MAX = 1 << 20
#: No record is smaller.
_LEAST_BYTES = FIXED_BYTES + 1
_NOBODY = bytes(8)


class RepairStep(NamedTuple):
    """A step of a repair.

    Attributes:
        text: a description for people.
        do: does the step.
    """

    text: str
    do: Callable[[], Awaitable[None]]


class Repair:
    """The repairs of one store. Who does the steps must hold the store's lock."""

    def __init__(self, store: InspectedStore, now_ms: int) -> None:
        self._store = store
        self._disk = store.disk
        self._log = store.log
        made = datetime.fromtimestamp(now_ms / 1000, UTC)
        #: The folder where removed files are kept.
        self.kept = f"{store.root}/removed/{made:%Y%m%dT%H%M%S}"

    def cut_at(self, log_offset: int) -> list[RepairStep]:
        """Ends the log at a log offset; everything behind it is moved away.

        There are no steps if the log ends there already.

        Raises:
            UsageError: neither a record nor damage begins there.
            StoreError: a file before it has another size than the others.
        """
        if not self._can_end_at(log_offset):
            raise UsageError(
                f"neither a message nor damage begins at log offset {log_offset}; "
                "`sprocket store verify` and `sprocket store dump` show where they do"
            )
        steps = []
        for path, _ in reversed(self._log.odd):
            if int(path.rpartition("/")[2]) < log_offset:
                raise StoreError(f"{path} has another size than the others: take it away first")
            steps.append(self._taking_away(path, "commitlog"))
        for start in reversed(self._log.starts):
            path = self._log.path_of(start)
            at = log_offset - start
            if at <= 0:
                steps.append(self._taking_away(path, "commitlog"))
            elif at < self._log.file_bytes and written_to(self._log.file(start), at) > at:
                steps.append(self._cutting(path, start, log_offset))
        marks = self._store.marks
        if not steps and (marks is None or marks.flushed <= log_offset):
            return []
        steps.append(RepairStep("lower the checkpoint to that log offset", self._lower(log_offset)))
        return steps

    def _can_end_at(self, log_offset: int) -> bool:
        for each in walk(self._log):
            place = each.end if isinstance(each, LogTail) else _start_of(each)
            if place >= log_offset:
                return place == log_offset
        return False

    def _cutting(self, path: str, start: int, log_offset: int) -> RepairStep:
        async def cut() -> None:
            file = self._disk.map(path, self._log.file_bytes)
            at = log_offset - start
            self._keep(file, at, len(file), log_offset)
            file.clear_from(at)
            await file.sync(at, len(file))
            file.close()

        return RepairStep(f"end the log at byte {log_offset - start} of {path}", cut)

    def _lower(self, log_offset: int) -> Callable[[], Awaitable[None]]:
        async def lower() -> None:
            if self._store.marks is None:
                return
            checkpoint = Checkpoint(self._disk, f"{self._store.root}/checkpoint")
            checkpoint.load()
            checkpoint.replay_from = min(self._store.marks.replay_from, log_offset)
            checkpoint.flushed = min(self._store.marks.flushed, log_offset)
            checkpoint.confirmed = min(checkpoint.confirmed, log_offset)
            await checkpoint.save()
            checkpoint.close()
            self._disk.remove(f"{self._store.root}/config/queueEnds.json")
            self._disk.remove(f"{self._store.root}/config/queueEnds.json.bak")

        return lower

    def skip_damaged(self) -> list[RepairStep]:
        """Makes the log whole again around what is damaged.

        Raises:
            StoreError: a file has another size than the others.
        """
        if odd := [path for path, size in self._log.odd if size]:
            raise StoreError(f"{odd[0]} has another size than the others: take it away first")
        damages = [each for each in walk(self._log) if isinstance(each, Damage)]
        steps = [self._filling(each) for each in damages]
        if damages:
            steps.append(
                RepairStep("have readers skip entries that lead there", self._marking(damages))
            )
        return steps

    def _filling(self, damage: Damage) -> RepairStep:
        async def fill() -> None:
            self._disk.make_directory(damage.path.rpartition("/")[0])
            file = self._disk.map(damage.path, self._log.file_bytes)
            end = damage.position + damage.end - damage.start
            self._keep(file, damage.position, end, damage.start)
            file.zero(damage.position, end)
            ending = _ending(self._log.file_bytes, damage.position, end)
            at = damage.position
            for filler in _fillers(damage.start, damage.end - len(ending), self._stored_ms(damage)):
                file.buffer[at : at + len(filler)] = filler
                at += len(filler)
            file.buffer[at:end] = ending
            await file.sync(damage.position, end)
            file.close()

        size = damage.end - damage.start
        return RepairStep(f"skip {size} bytes at byte {damage.position} of {damage.path}", fill)

    def _stored_ms(self, damage: Damage) -> int:
        """A store time for the fillers: that of the next message, 0 if there is none."""
        try:
            return self._log.record_at(damage.end).stored_ms
        except (CorruptRecord, OffsetOutOfRange):
            return 0

    def _marking(self, damages: Sequence[Damage]) -> Callable[[], Awaitable[None]]:
        size = self._log.file_bytes
        endings = [
            len(_ending(size, each.position, each.position + each.end - each.start))
            for each in damages
        ]

        async def mark() -> None:
            for topic, number in self._store.queues():
                folder = self._store.queue_folder(topic, number)
                is_batch = self._store.is_batch(topic, number)
                for name in self._disk.names(folder):
                    size = self._disk.size(f"{folder}/{name}") or 0
                    unit_bytes = UNIT_BYTES if is_batch else ENTRY_BYTES
                    if len(name) != NAME_DIGITS or size % unit_bytes or not size:
                        continue
                    file = self._disk.map(f"{folder}/{name}", size)
                    if _lead_to_filler(file, damages, endings, unit_bytes):
                        await file.sync(0, size)
                    file.close()

        return mark

    def rebuild_views(self) -> list[RepairStep]:
        """Moves queues, key index and checkpoint away: the next start builds them from the log."""
        names = ("consumequeue", "batchconsumequeue", "litequeue", "index", "checkpoint")
        there = self._disk.names(self._store.root)
        steps = [
            self._taking_away(f"{self._store.root}/{name}", "") for name in names if name in there
        ]
        return [
            *steps,
            RepairStep("the next start reads the whole log, and builds them from it", _nothing),
        ]

    def _taking_away(self, path: str, folder: str) -> RepairStep:
        async def take_away() -> None:
            target = f"{self.kept}/{folder}" if folder else self.kept
            self._disk.make_directory(target)
            self._disk.move(path, f"{target}/{path.rpartition('/')[2]}")

        return RepairStep(f"take away {path}", take_away)

    def _keep(self, file: FileBytes, start: int, end: int, log_offset: int) -> None:
        """Saves bytes [start, end) of a log file in the folder `kept`, without the zeros behind."""
        folder = f"{self.kept}/commitlog"
        content = bytes(file[start : min(end, written_to(file, start))])
        if content:
            self._disk.make_directory(folder)
            part = f"{folder}/{log_offset:020d}.part"
            self._disk.replace(part, content, backup=False)


async def _nothing() -> None:
    """Does nothing: the step is only a description."""


def _start_of(each: Record | Damage) -> int:
    return each.start if isinstance(each, Damage) else each.log_offset


def _ending(file_bytes: int, at: int, end: int) -> bytes:
    """The blank mark that ends a file; empty unless bytes [at, end) are the file's last ones."""
    if end < file_bytes:
        return b""
    left = end - at if end - at < _LEAST_BYTES + BLANK_BYTES else BLANK_BYTES
    mark = BLANK.pack(left, BLANK_MAGIC) if left >= BLANK_BYTES else b""
    return mark.ljust(left, b"\0")


def _fillers(start: int, end: int, stored_ms: int) -> Iterator[bytes]:
    """Filler records for bytes [start, end) of the log; the first one is small."""
    if 0 < end - start < _LEAST_BYTES:
        raise StoreError(f"{end - start} bytes at log offset {start} are too few to skip")
    size = _first_bytes(end - start)
    while start < end:
        yield _filler(start, size, stored_ms)
        start += size
        size = min(end - start, _FILLER_BYTES_MAX)
        if 0 < end - start - size < _LEAST_BYTES:
            size -= _LEAST_BYTES


def _first_bytes(total: int) -> int:
    """Size of the first filler: as small as possible, or all if a second one does not fit."""
    usual = FIXED_BYTES + len(FILLER_TOPIC)
    return usual if total >= usual + _LEAST_BYTES else total


def _filler(log_offset: int, size: int, stored_ms: int) -> bytes:
    topic = FILLER_TOPIC[: size - FIXED_BYTES]
    draft = Draft(
        topic=topic,
        queue_number=0,
        body=bytes(size - FIXED_BYTES - len(topic)),
        properties=b"",
        tag_code=0,
        flag=0,
        sys_flag=ROLLED_BACK,
        born_ms=stored_ms,
        born_host=_NOBODY,
    )
    return Encoder(_NOBODY).encode(
        draft,
        topic_part(topic.encode()),
        log_offset=log_offset,
        queue_offset=0,
        stored_ms=stored_ms,
    )


def _lead_to_filler(
    file: MappedFile, damages: Sequence[Damage], endings: Sequence[int], unit_bytes: int
) -> bool:
    """Makes entries that point into damage point to its filler. Returns whether there were any.

    Args:
        unit_bytes: size of what begins with an entry: an entry, or a unit of a batch queue.
    """
    found = False
    for at in range(0, len(file), unit_bytes):
        start, size, _ = ENTRY.unpack(file[at : at + ENTRY_BYTES])
        if size <= 0:
            break
        for damage, ending in zip(damages, endings, strict=True):
            if damage.start <= start < damage.end and size != BLANK_SIZE:
                room = damage.end - ending - damage.start
                entry = (damage.start, _first_bytes(room), DAMAGED_CODE)
                if not room:
                    entry = (damage.end, BLANK_SIZE, 0)
                ENTRY.pack_into(file.buffer, at, *entry)
                found = True
    return found
