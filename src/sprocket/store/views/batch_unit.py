"""A unit of a batch queue: a record of one message or of a batch. Pure.

`UNIT` declares it, and `docs/formats/batch-queue.md` explains its fields.
Source: BatchConsumeQueue of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

UNIT = struct.Struct(">qiqqqhii")
UNIT_BYTES = UNIT.size
#: The number of messages is a signed 16-bit number.
MESSAGES_MAX = 32_767
#: Source: BatchConsumeQueue.INVALID_POS: the record was not compacted.
NOT_COMPACTED = -1


class BatchUnit(NamedTuple):
    """A unit; the names are those of the format's page."""

    log_offset: int
    record_bytes: int
    tag_code: int
    stored_ms: int
    first_offset: int
    messages: int
    compacted_offset: int
    reserved: int

    @property
    def end(self) -> int:
        """The offset after its last message."""
        return self.first_offset + self.messages

    @property
    def is_valid(self) -> bool:
        """Whether it was written; the rules are RocketMQ's."""
        return (
            self.log_offset >= 0
            and self.record_bytes > 0
            and self.first_offset >= 0
            and self.messages > 0
        )


def units_in(content: bytes | bytearray | memoryview) -> Iterator[BatchUnit]:
    """The units of a file, up to the first that was not written."""
    whole = len(content) - len(content) % UNIT_BYTES
    for fields in UNIT.iter_unpack(content[:whole]):
        unit = BatchUnit._make(fields)
        if not unit.is_valid:
            return
        yield unit
