"""Small stores for tests: files of a few records, so that rolling happens in every test."""

from __future__ import annotations

from typing import Any

from sprocket.message.hosts import pack
from sprocket.message.record import Draft, StoredMessage, decode
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk

ROOT = "/store"
HOST = pack("127.0.0.1:10911")
SENDER = pack("10.0.0.7:4000")
#: Some fifteen small messages a file of the log, eight entries a file of a queue.
SMALL = StoreConfig(log_file_bytes=2048, queue_file_bytes=160, index_slots=8, index_entries=32)


async def opened(
    disk: MemoryDisk, *, clock: ManualClock | None = None, config: StoreConfig = SMALL
) -> Store:
    return await Store.open(
        disk=disk,
        clock=clock or ManualClock(),
        root=ROOT,
        config=config,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )


def a_draft(body: bytes = b"hello", **changes: Any) -> Draft:
    fields: dict[str, Any] = {
        "topic": "orders", "queue_number": 0, "body": body, "properties": b"TAGS\x01a\x02",
        "tag_code": 97, "flag": 0, "sys_flag": 0, "born_ms": 1, "born_host": SENDER,
    }  # fmt: skip
    return Draft(**(fields | changes))


def messages(store: Store, topic: str = "orders", number: int = 0) -> list[StoredMessage]:
    """All that a queue gives, read one by one; each must lie where its own record says."""
    found = []
    offset = int(store.min_offset(topic, number))
    while offset < store.max_offset(topic, number):
        read = store.read(topic, number, offset, count_max=1, bytes_max=1 << 20)
        if read.count:
            message = decode(read.parts[0])
            assert (message.topic, message.queue.number) == (topic, number)
            assert message.queue_offset == offset
            assert bytes(store.lookup(message.log_offset)) == bytes(read.parts[0])
            found.append(message)
        assert read.next_offset > offset
        offset = int(read.next_offset)
    return found


def bodies(store: Store, topic: str = "orders", number: int = 0) -> list[bytes]:
    return [message.body for message in messages(store, topic, number)]
