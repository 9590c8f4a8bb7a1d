"""What views receive of one record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

#: Bit of the system flag of a prepared or rolled back message: its record is in no queue.
IN_NO_QUEUE = 0x4


class Entry(msgspec.Struct, gc=False):
    """What a view receives of a record that has been written.

    Attributes:
        tag_code: hash of the tag, or the due time of a delayed message.
        sys_flag: RocketMQ's bits; with `IN_NO_QUEUE` the record is in no queue.
        keys, unique_key: words by which it can be found, and the id from its sender.
    """

    topic: str
    queue_number: int
    queue_offset: int
    log_offset: int
    record_bytes: int
    tag_code: int
    stored_ms: int
    sys_flag: int
    keys: str = ""
    unique_key: str = ""

    @property
    def count(self) -> int:
        """How many messages it holds."""
        return 1

    @property
    def end(self) -> int:
        """Log offset after the record. It is on the disk when `flushed` has reached that offset."""
        return self.log_offset + self.record_bytes


class BatchEntry(Entry, gc=False):
    """The same of a record that holds a batch.

    Attributes:
        held: how many messages it holds.
    """

    held: int = 1

    @property
    def count(self) -> int:
        """How many messages it holds."""
        return self.held


class EntryColumns(msgspec.Struct, gc=False):
    """What a view receives of messages of one queue that were written together, column by column.

    Attributes:
        queue_offset: of the first.
        log_offsets, record_bytes: of each record.
        keys: of each message, as in `Entry`.
        unique_keys: of each message, in UTF-8; empty if it has none.
    """

    topic: str
    queue_number: int
    queue_offset: int
    log_offsets: list[int]
    record_bytes: list[int]
    stored_ms: int
    sys_flag: int
    keys: list[str]
    unique_keys: list[bytes]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> EntryColumns:
        """The columns of entries of one queue, at least one, that were written one by one."""
        first = entries[0]
        return cls(
            first.topic,
            first.queue_number,
            first.queue_offset,
            [each.log_offset for each in entries],
            [each.record_bytes for each in entries],
            first.stored_ms,
            first.sys_flag,
            [each.keys for each in entries],
            [each.unique_key.encode("utf-8", "surrogatepass") for each in entries],
        )

    def __len__(self) -> int:
        """How many messages they are."""
        return len(self.log_offsets)

    @property
    def end(self) -> int:
        """Log offset after the last record."""
        return self.log_offsets[-1] + self.record_bytes[-1]
