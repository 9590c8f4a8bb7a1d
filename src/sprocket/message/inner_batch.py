"""Takes the messages out of a record that holds a batch. Pure.

Source: MessageDecoder.decodeMessage and PullAPIWrapper.processPullResult of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.message.batch import decode
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset

#: Bits of the system flag of a record that holds a batch, and of one whose readers take messages
#: out of it; brokers set both.
INNER_BATCH = 0x80
NEEDS_UNWRAPPING = 0x40
WRAPPED = INNER_BATCH | NEEDS_UNWRAPPING

#: RocketMQ clears the top bit of a CRC-32, so that it fits into a Java int without a sign.
_CRC_MASK = 0x7FFFFFFF


def unwrapped(envelope: StoredMessage) -> Iterator[StoredMessage]:
    """The messages of a batch, each with its own offset; what they share is the record's.

    Raises:
        CorruptRecord: the body is no batch.
    """
    try:
        parts = decode(envelope.body)
    except RemoteProtocolError as error:
        raise CorruptRecord(f"the batch at log offset {envelope.log_offset}: {error}") from error
    for number, (flag, body, text) in enumerate(parts):
        content = bytes(body)
        yield StoredMessage(
            envelope.queue,
            QueueOffset(envelope.queue_offset + number),
            envelope.log_offset,
            content,
            text.encode("utf-8", "replace"),
            flag,
            envelope.sys_flag & ~WRAPPED,
            envelope.born_ms,
            envelope.born_host,
            envelope.stored_ms,
            envelope.store_host,
            0,
            0,
            envelope.record_bytes,
            crc32(content) & _CRC_MASK,
        )
