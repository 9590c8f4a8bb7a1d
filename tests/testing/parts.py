"""What tests of the journal and of invariants have in common."""

from __future__ import annotations

from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.queue import QueueId

QUEUE = QueueId("orders", "broker-0", 0)


def stored(offset: int, key: str, body: bytes | None = None) -> StoredMessage:
    return StoredMessage(
        queue=QUEUE,
        queue_offset=QueueOffset(offset),
        log_offset=LogOffset(offset * 100),
        body=key.encode() if body is None else body,
        as_read={"KEYS": key},
        flag=0,
        sys_flag=0,
        born_ms=0,
        born_host="10.0.0.1:1",
        stored_ms=0,
        store_host="10.0.0.2:1",
        reconsume_times=0,
        prepared_offset=0,
        record_bytes=100,
        body_crc=0,
    )
