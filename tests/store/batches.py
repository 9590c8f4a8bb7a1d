"""Stores with a topic that keeps batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft

TOPIC = "packs"
#: Four units a file.
CONFIG = replace(SMALL, batch_queue_file_bytes=4 * 46)


def disk_with_topic(kind: type[MemoryDisk] = MemoryDisk) -> MemoryDisk:
    """A disk whose broker's file names the topic as one with batch queues."""
    disk = kind()
    disk.make_directory(f"{ROOT}/config")
    table = {TOPIC: {"attributes": {"queue.type": "BatchCQ"}}}
    raw = json.dumps({"topicConfigTable": table}).encode()
    disk.replace(f"{ROOT}/config/topics.json", raw, backup=False)
    return disk


def body_of(bodies: Sequence[bytes], tag: str | None = None) -> bytes:
    text = "" if tag is None else f"TAGS\x01{tag}\x02"
    return encode(BatchedMessage(0, body, text) for body in bodies)


def put(store: Store, *bodies: bytes, number: int = 0, tag: str | None = None) -> Appended:
    """Appends a batch, or a message by itself if there is one body."""
    if len(bodies) == 1:
        return store.append(a_draft(bodies[0], topic=TOPIC, queue_number=number))
    draft = a_draft(
        body_of(bodies, tag), topic=TOPIC, queue_number=number, tag_code=0,
        properties=b"UNIQ_KEY\x01k\x02", unique_key="k",
    )  # fmt: skip
    return store.batches.append(draft, len(bodies))


def everything(store: Store, number: int = 0, start: int | None = None) -> list[StoredMessage]:
    """All messages of the queue, read in small pieces."""
    found: list[StoredMessage] = []
    offset = int(store.min_offset(TOPIC, number)) if start is None else start
    while offset < store.max_offset(TOPIC, number):
        read = store.read(TOPIC, number, offset, count_max=3, bytes_max=600)
        for part in read.parts:
            found += (each for each in scan(part) if each.queue_offset >= offset)
        assert read.next_offset > offset
        offset = int(read.next_offset)
    return found


def numbered(store: Store, number: int = 0) -> list[tuple[int, bytes]]:
    """Offset and body of each message."""
    return [(int(each.queue_offset), each.body) for each in everything(store, number)]
