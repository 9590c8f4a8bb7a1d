"""Checks a whole store and reports what is wrong, with file and position. Changes nothing.

Every record of the log is checked. Every entry of every queue must point to the record that has its
queue and offset, and every record must have its entry. The key index must be consistent. Checkpoint
and state files must be readable. A store that a process has open is checked as far as it is known
to be on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.inspection.verify_agreed import Agreement
from sprocket.store.inspection.verify_index import verify_index
from sprocket.store.inspection.verify_lite import LiteCheck
from sprocket.store.inspection.verify_queues import deleted_topics, verify_queues
from sprocket.store.inspection.walk import LogTail, walk_entries
from sprocket.store.log.damage import Damage
from sprocket.store.state.checkpoint import FILE_BYTES as CHECKPOINT_BYTES
from sprocket.store.state.snapshot import decode_state
from sprocket.store.views.record_batch import RecordBatch

Advance = Callable[[int], None]


class NewestMessage(NamedTuple):
    """The newest message of a queue, according to the log.

    Attributes:
        offset: its offset in the queue.
        log_offset: log offset of its record.
    """

    offset: int
    log_offset: int


class Verification:
    """One check of a store. `findings` does the work; the numbers grow meanwhile.

    Attributes:
        records: number of whole records so far.
        log_start, log_end: log offsets of the first record and after the last.
        entries: number of checked entries of queues.
        index_entries: number of checked entries of the key index.
    """

    def __init__(self, store: InspectedStore) -> None:
        self._store = store
        self._advance: Advance = lambda size: None
        #: The newest message of each queue, by topic and number.
        self._newest: dict[tuple[str, int], NewestMessage] = {}
        self._damaged: list[tuple[int, int]] = []
        self._agreement = Agreement(store)
        self._lites = LiteCheck(store, deleted_topics(store))
        self.records = 0
        self.log_start = store.log.start
        self.log_end = store.log.start
        self.entries = 0
        self.index_entries = 0

    @property
    def total_bytes(self) -> int:
        """Bytes that there are to check."""
        store = self._store
        queues = sum(
            store.disk.size(f"{folder}/{name}") or 0
            for topic, number in store.queues()
            for folder in (store.queue_folder(topic, number),)
            for name in store.disk.names(folder)
        )
        return len(store.log.starts) * store.log.file_bytes + queues

    def findings(self, advance: Advance = lambda size: None) -> Iterator[Finding]:
        """Everything that is wrong, and information.

        Args:
            advance: is called with the number of bytes just checked, `total_bytes` in all.
        """
        self._advance = advance
        if self._store.is_live:
            yield Finding(
                "store", f"{self._store.root}/lock", 0,
                f"a process has it open: checked up to log offset {self._store.until}",
                is_fault=False,
            )  # fmt: skip
        yield from self._log()
        yield from self._queues()
        for finding in verify_index(self._store, self.log_end):
            if isinstance(finding, int):
                self.index_entries += finding
            else:
                yield finding
        yield from self._checkpoint()
        yield from self._state()

    def _log(self) -> Iterator[Finding]:
        log = self._store.log
        for path, size in log.odd:
            # A crash between making a file and setting its size leaves an empty file.
            text = f"it has {size} bytes, the files of this log have {log.file_bytes}"
            yield Finding("log", path, 0, text, is_fault=bool(size))
        for each in walk_entries(log, until=self._store.until, advance=self._advance):
            if isinstance(each, RecordBatch):
                self._note(each)
            elif isinstance(each, Damage):
                self._damaged.append((each.start, each.end))
                text = f"{each.why}; {each.end - each.start} bytes are no messages"
                yield Finding("log", each.path, each.position, text, True, each.start, each.end)
            else:
                self.log_end = each.end
                if each.rest_bytes:
                    yield self._torn(each)

    def _note(self, batch: RecordBatch) -> None:
        self.records += batch.count
        self._lites.note(batch)
        for name, own in batch.queue_columns():
            log_offset = own.log_offsets[-1]
            last = own.queue_offsets[-1] + own.count_of(log_offset) - 1
            self._newest[name] = NewestMessage(last, log_offset)
            self._agreement.compare(*name, own)

    def _torn(self, tail: LogTail) -> Finding:
        is_known = self._store.marks is not None and tail.end < self._store.marks.flushed
        text = (
            f"the log ends here, and {tail.rest_bytes} bytes behind it are no message: {tail.why}. "
            + ("They had been on the disk" if is_known else "A start cuts them off")
        )
        is_fault = is_known or self._store.was_stopped
        return Finding("log", tail.path, tail.position, text, is_fault, tail.end)

    def _queues(self) -> Iterator[Finding]:
        for finding in verify_queues(
            self._store,
            {name: (ends.offset, ends.log_offset) for name, ends in self._newest.items()},
            log_end=self.log_end,
            damaged=self._damaged,
            agreement=self._agreement,
            advance=self._advance,
        ):
            if isinstance(finding, int):
                self.entries += finding
            else:
                yield finding
        self.entries += self._lites.count
        yield from self._lites.findings()

    def _checkpoint(self) -> Iterator[Finding]:
        path = f"{self._store.root}/checkpoint"
        size = self._store.disk.size(path)
        if size is None:
            text = "it is missing: the next start reads the log from its beginning"
            yield Finding("checkpoint", path, 0, text, is_fault=False)
        elif size != CHECKPOINT_BYTES:
            yield Finding("checkpoint", path, 0, f"it has {size} bytes, not {CHECKPOINT_BYTES}")
        elif self._store.marks is None:
            text = "it has no fields of ours: the next start uses Java's times"
            yield Finding("checkpoint", path, 64, text, is_fault=False)
        elif self._store.marks.flushed > self.log_end and not self._store.is_live:
            text = (
                f"the log was on the disk up to {self._store.marks.flushed}, and now ends at "
                f"{self.log_end}"
            )
            yield Finding("checkpoint", path, 88, text)

    def _state(self) -> Iterator[Finding]:
        folder = f"{self._store.root}/config"
        for name in self._store.disk.names(folder):
            if not name.endswith((".json", ".json.bak")):
                continue
            fault = _fault_of_state(self._store.disk.read(f"{folder}/{name}") or b"")
            if fault:
                yield Finding("state", f"{folder}/{name}", 0, fault)


def _fault_of_state(raw: bytes) -> str:
    if not raw:
        return "it is empty"
    try:
        decode_state(raw.decode())
    except ValueError as error:
        return f"it is broken: {error}"
    return ""
