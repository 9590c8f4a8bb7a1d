"""What views receive of one record."""

from __future__ import annotations

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
