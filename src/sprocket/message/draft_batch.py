"""Messages for one queue that have most in common, before they are in the log; their records. Pure.

What differs from message to message is in columns. The records are those that `Encoder.encode`
gives for the drafts one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, repeat
from typing import NamedTuple
from zlib import crc32

import msgspec

from sprocket.message.record import (
    BODY_CRC_AT,
    CRC_MASK,
    FLAG_AT,
    MAGIC_AT,
    QUEUE_NUMBER_AT,
    SYS_FLAG_AT,
    Draft,
    Encoder,
)

_LENGTH = struct.Struct(">h")
_LENGTH_BYTES = 4


class DraftBatch(msgspec.Struct, gc=False):
    """Messages before they are in the log, at least one.

    Attributes:
        topic, queue_number, sys_flag, born_ms, born_host, prepared_offset: of all of them, as in
            `Draft`.
        flags, bodies, tag_codes, keys: of each, as in `Draft`.
        unique_keys: the same in UTF-8.
        properties: of each, as text in UTF-8, ...
        properties_end: ... and what follows in all of them.
    """

    topic: str
    queue_number: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    flags: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]
    properties_end: bytes
    tag_codes: Sequence[int]
    keys: list[str]
    unique_keys: list[bytes]
    prepared_offset: int = 0

    def drafts(self) -> list[Draft]:
        """Each message by itself."""
        return [
            Draft(
                self.topic, self.queue_number, body, text + self.properties_end, tag_code, flag,
                self.sys_flag, self.born_ms, self.born_host, 0, self.prepared_offset, keys,
                unique_key.decode(),
            )
            for flag, body, text, tag_code, keys, unique_key in zip(
                self.flags, self.bodies, self.properties, self.tag_codes, self.keys,
                self.unique_keys, strict=True,
            )
        ]  # fmt: skip


class BatchRecords(NamedTuple):
    """The records of a batch, one behind the other.

    Attributes:
        log_offsets, sizes: where each begins, and its bytes.
    """

    content: bytes
    log_offsets: list[int]
    sizes: list[int]


# One call of C for each column, and none of ours for each message: 0.6 µs a message of 100 B. One
# record is encoded alone, and its head is the form for all.
def encode_batch(
    encoder: Encoder,
    batch: DraftBatch,
    topic: bytes,
    *,
    log_offset: int,
    queue_offset: int,
    stored_ms: int,
) -> BatchRecords:
    """The records of a batch.

    Args:
        topic: as `topic_part` returns it.
        log_offset, queue_offset: of the first.

    Raises:
        struct.error: a number or length does not fit into its field.
    """
    alone = Draft(
        batch.topic, batch.queue_number, b"", b"", 0, 0, batch.sys_flag, batch.born_ms,
        batch.born_host, 0, batch.prepared_offset,
    )  # fmt: skip
    form = encoder.encode(alone, topic, log_offset, queue_offset, stored_ms)
    head_bytes = len(form) - len(topic) - _LENGTH.size
    bodies, texts, behind = batch.bodies, batch.properties, batch.properties_end
    count, fixed = len(bodies), len(form) + len(behind)
    body_sizes, text_sizes = list(map(len, bodies)), list(map(len, texts))
    sizes = [fixed + body + text for body, text in zip(body_sizes, text_sizes, strict=True)]
    log_offsets = list(accumulate(sizes[:-1], initial=log_offset))
    # Few lengths differ, so their bytes are made once each.
    tails = {size: topic + _LENGTH.pack(size + len(behind)) for size in set(text_sizes)}
    pieces: list[bytes] = [b""] * (5 * count)
    pieces[0::5] = map(
        _head(head_bytes - SYS_FLAG_AT - _LENGTH_BYTES).pack,
        sizes,
        repeat(form[MAGIC_AT:BODY_CRC_AT]),
        [crc32(body) & CRC_MASK for body in bodies],
        repeat(form[QUEUE_NUMBER_AT:FLAG_AT]),
        batch.flags,
        range(queue_offset, queue_offset + count),
        log_offsets,
        repeat(form[SYS_FLAG_AT : head_bytes - _LENGTH_BYTES]),
        body_sizes,
    )
    pieces[1::5] = bodies
    pieces[2::5] = map(tails.__getitem__, text_sizes)
    pieces[3::5] = texts
    pieces[4::5] = [behind] * count
    return BatchRecords(b"".join(pieces), log_offsets, sizes)


@lru_cache
def _head(same_bytes: int) -> struct.Struct:
    """A head whose fields from the system flag up to the body length are the same in all records,
    as are magic and queue number."""
    return struct.Struct(f">i4si4siqq{same_bytes}si")
