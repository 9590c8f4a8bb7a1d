"""Takes records that hold batches apart: one record for each message, as if it had been sent alone.

The decoder works on columns of equal records; a topic that keeps batches is rare.
"""

from __future__ import annotations

from sprocket.message.batch import decode
from sprocket.message.inner_batch import WRAPPED
from sprocket.message.record import Buffer, Draft, Encoder, Record, parse, topic_part


def taken_apart(buffer: Buffer) -> bytes:
    """The same messages in records of their own.

    Raises:
        CorruptRecord: the buffer is not a sequence of records.
        RemoteProtocolError: the body of a batch is none.
    """
    view, parts, at = memoryview(buffer), list[bytes | memoryview](), 0
    while at < len(view):
        record = parse(view, at)
        whole = view[at : at + record.size]
        at += record.size
        if record.sys_flag & WRAPPED == WRAPPED:
            parts += _messages(record)
        else:
            parts.append(whole)
    return b"".join(parts)


def _messages(record: Record) -> list[bytes]:
    encoder, topic = Encoder(record.store_host), topic_part(record.topic.encode())
    return [
        encoder.encode(
            Draft(
                record.topic, record.queue_number, body, text.encode("utf-8", "replace"), 0, flag,
                record.sys_flag & ~WRAPPED, record.born_ms, record.born_host,
            ),
            topic, record.log_offset, record.queue_offset + number, record.stored_ms,
        )
        for number, (flag, body, text) in enumerate(decode(record.body))
    ]  # fmt: skip
