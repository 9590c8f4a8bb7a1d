"""A message's record: its bytes in the log, and in the body of a pull reply.

A head of fixed fields, which `_FIELDS` declares and from which all offsets here and elsewhere come;
then the body, the topic with its length, and the properties with theirs. `docs/formats/record.md`
says what each field means. Numbers are big-endian. Pure. Source: MessageDecoder, MessageVersion and
CommitLog.checkMessageAndReturnSize of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from zlib import crc32

import msgspec

from sprocket.base.errors import CorruptRecord
from sprocket.message.compression import COMPRESSED
from sprocket.message.hosts import V4_BYTES, V6_BYTES, unpack
from sprocket.message.inner_batch import WRAPPED, unwrapped
from sprocket.message.message import StoredMessage
from sprocket.message.opening import Opening, OpeningStopped, unbounded
from sprocket.message.queue import QueueId

Buffer = bytes | bytearray | memoryview

MAGIC = -626843481
MAGIC_LONG_TOPIC = -626843477
#: The magic of a blank, which fills the unused rest of a log file.
BLANK_MAGIC = -875286124
BLANK = struct.Struct(">ii")  # size and magic
BLANK_BYTES = BLANK.size

BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
#: Transaction state of a message: 0 none, then prepared, committed, rolled back.
TRANSACTION_MASK = 0xC
PREPARED = 0x4
COMMITTED = 0x8
ROLLED_BACK = 0xC

#: RocketMQ clears the top bit of a CRC-32, so that it fits into a Java int without a sign.
CRC_MASK = 0x7FFFFFFF

#: The head, with two IPv4 addresses: each field and its format in `struct`.
_FIELDS = {
    "size": "i", "magic": "i", "body_crc": "i", "queue_number": "i", "flag": "i",
    "queue_offset": "q", "log_offset": "q", "sys_flag": "i", "born_ms": "q",
    "born_host": f"{V4_BYTES}s", "stored_ms": "q", "store_host": f"{V4_BYTES}s",
    "reconsume_times": "i", "prepared_offset": "q", "body_length": "i",
}  # fmt: skip


def _big_endian(*formats: str) -> struct.Struct:
    return struct.Struct(">" + "".join(formats))


def head_struct(*names: str) -> struct.Struct:
    """Takes some fields out of a head with two IPv4 addresses, in order, and skips the others."""
    sizes = {name: _big_endian(form).size for name, form in _FIELDS.items()}
    return _big_endian(*(_FIELDS[n] if n in names else f"{sizes[n]}x" for n in _FIELDS))


def _head(born_bytes: int, store_bytes: int) -> struct.Struct:
    hosts = {"born_host": f"{born_bytes}s", "store_host": f"{store_bytes}s"}
    return _big_endian(*(_FIELDS | hosts).values())


def _at(name: str) -> int:
    return _big_endian(*list(_FIELDS.values())[: list(_FIELDS).index(name)]).size


MAGIC_AT, BODY_CRC_AT = _at("magic"), _at("body_crc")
QUEUE_NUMBER_AT = _at("queue_number")
FLAG_AT = _at("flag")
QUEUE_OFFSET_AT, LOG_OFFSET_AT = _at("queue_offset"), _at("log_offset")
SYS_FLAG_AT = _at("sys_flag")
BORN_AT, BORN_HOST_AT = _at("born_ms"), _at("born_host")
#: These and the body begin `V6_MORE_BYTES` later for each IPv6 address before them.
STORED_AT, STORE_HOST_AT = _at("stored_ms"), _at("store_host")
RECONSUME_TIMES_AT = _at("reconsume_times")
PREPARED_OFFSET_AT = _at("prepared_offset")
BODY_LENGTH_AT = _at("body_length")

#: The format of the part before the body, by the two address bits of the system flag.
_HEADS = {
    0: _head(V4_BYTES, V4_BYTES),
    BORN_HOST_V6: _head(V6_BYTES, V4_BYTES),
    STORE_HOST_V6: _head(V4_BYTES, V6_BYTES),
    BORN_HOST_V6 | STORE_HOST_V6: _head(V6_BYTES, V6_BYTES),
}
HOSTS_MASK = BORN_HOST_V6 | STORE_HOST_V6
BODY_AT = _HEADS[0].size
_MAGIC_END = MAGIC & 0xFF

_LENGTH = struct.Struct(">h")
_INT = struct.Struct(">i")
#: Head with two IPv4 addresses, topic length in one byte, properties length: the smallest record.
FIXED_BYTES = BODY_AT + 1 + _LENGTH.size
#: Bytes of a record besides addresses, body, topic with its length, and properties.
_UNADDRESSED_BYTES = FIXED_BYTES - 1 - 2 * V4_BYTES


class Draft(msgspec.Struct, gc=False):
    """A message before it is in the log.

    Attributes:
        properties: their text in UTF-8, see `sprocket.message.properties`.
        tag_code: the number in the consume queue entry: hash of the tag, or due time.
        sys_flag: RocketMQ's bits; `Encoder` sets those for address families.
        born_host: packed address of the sender, 8 or 20 bytes.
        prepared_offset: log offset of the half message, for a transaction's message.
        keys: blank-separated words by which it can be found.
        unique_key: the id from its sender.
    """

    topic: str
    queue_number: int
    body: Buffer
    properties: bytes
    tag_code: int
    flag: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    reconsume_times: int = 0
    prepared_offset: int = 0
    keys: str = ""
    unique_key: str = ""


def body_crc(body: Buffer) -> int:
    """The checksum of a body in its record: CRC-32 without the top bit."""
    return crc32(body) & CRC_MASK


def record_bytes(draft: Draft, topic: bytes, store_host: bytes) -> int:
    """The size of the draft's record; `topic` as `topic_part` returns it."""
    return (
        _UNADDRESSED_BYTES
        + len(draft.body)
        + len(topic)
        + len(draft.properties)
        + len(draft.born_host)
        + len(store_host)
    )


def topic_part(topic: bytes) -> bytes:
    """The bytes of a topic in a record: its length in one byte or two, then the topic."""
    return len(topic).to_bytes(1 if len(topic) <= 127 else 2, "big") + topic


class Encoder:
    """Encodes records for one store host."""

    __slots__ = ("_host_flag", "store_host")

    def __init__(self, store_host: bytes) -> None:
        self.store_host = store_host
        self._host_flag = STORE_HOST_V6 if len(store_host) == V6_BYTES else 0

    def encode(
        self, draft: Draft, topic: bytes, log_offset: int, queue_offset: int, stored_ms: int
    ) -> bytes:
        """The draft's record; `topic` as `topic_part` returns it.

        Raises:
            struct.error: a number or length does not fit into its field.
        """
        # Every stored message passes here, so the body is touched twice only (checksum, join), and
        # what several drafts share comes ready: the topic's bytes and the store host. A number
        # that does not fit fails here, before anything is in the log.
        body = draft.body
        properties = draft.properties
        born_host = draft.born_host
        sys_flag = draft.sys_flag & ~HOSTS_MASK | self._host_flag
        if len(born_host) != V4_BYTES:
            sys_flag |= BORN_HOST_V6
        head = _HEADS[sys_flag & HOSTS_MASK]
        body_bytes = len(body)
        properties_bytes = len(properties)
        # Joining once and copying once into the file is faster than packing the parts in place.
        return b"".join(
            (
                head.pack(
                    head.size + body_bytes + len(topic) + 2 + properties_bytes,
                    MAGIC if len(topic) <= 128 else MAGIC_LONG_TOPIC,
                    crc32(body) & CRC_MASK,
                    draft.queue_number,
                    draft.flag,
                    queue_offset,
                    log_offset,
                    sys_flag,
                    draft.born_ms,
                    born_host,
                    stored_ms,
                    self.store_host,
                    draft.reconsume_times,
                    draft.prepared_offset,
                    body_bytes,
                ),
                body,
                topic,
                _LENGTH.pack(properties_bytes),
                properties,
            )
        )


class Record(msgspec.Struct, gc=False):
    """A record with checked lengths; body and properties are still bytes."""

    size: int
    body_crc: int
    queue_number: int
    flag: int
    queue_offset: int
    log_offset: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    stored_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_offset: int
    body: memoryview
    topic: str
    properties: memoryview


def _take_apart(view: bytes | memoryview, at: int) -> tuple[tuple[Any, ...], int, int, int, int]:
    """The fields of a record's head; then where body, topic and properties begin and where it ends.

    Raises:
        CorruptRecord: the magic is unknown, or the lengths contradict each other or the buffer.
    """
    # The address bits decide which of four layouts the head has, so one `unpack` reads it. Bytes
    # may be half written, or a stranger's: no length is used unchecked.
    room = len(view) - at
    if room < FIXED_BYTES:
        raise CorruptRecord(f"no record fits into {room} bytes")
    head = _HEADS[view[at + SYS_FLAG_AT + 3] & HOSTS_MASK]
    if room < head.size:
        raise CorruptRecord(f"no record fits into {room} bytes")
    fields = head.unpack_from(view, at)
    size, magic, body_bytes = fields[0], fields[1], fields[-1]
    end = at + size
    body_at = at + head.size
    topic_at = body_at + body_bytes + 1
    if size > room or body_bytes < 0 or topic_at + 2 > end:
        raise CorruptRecord(f"a record of {size} bytes with a body of {body_bytes}, in {room}")
    topic_bytes = view[topic_at - 1]
    if magic == MAGIC_LONG_TOPIC:
        topic_bytes = topic_bytes << 8 | view[topic_at]
        topic_at += 1
    elif magic != MAGIC:
        raise CorruptRecord(f"magic {magic & 0xFFFFFFFF:#010x} is no record's")
    properties_at = topic_at + topic_bytes + 2
    if properties_at > end:
        raise CorruptRecord(f"a topic of {topic_bytes} bytes does not fit")
    if end - properties_at != view[properties_at - 2] << 8 | view[properties_at - 1]:
        raise CorruptRecord("the properties do not end with the record")
    return fields, body_at, topic_at, properties_at, end


def parse(buffer: Buffer, at: int = 0) -> Record:
    """Parses the record at an offset of a buffer; body and properties are views of it.

    Raises:
        CorruptRecord: the magic is unknown, or the lengths contradict each other or the buffer.
    """
    view = memoryview(buffer)
    fields, body_at, topic_at, properties_at, end = _take_apart(view, at)
    (
        size, _, crc, queue_number, flag, queue_offset, log_offset, sys_flag, born_ms, born_host,
        stored_ms, store_host, reconsume_times, prepared_offset, body_bytes,
    ) = fields  # fmt: skip
    return Record(
        size, crc, queue_number, flag, queue_offset, log_offset, sys_flag, born_ms, born_host,
        stored_ms, store_host, reconsume_times, prepared_offset,
        view[body_at : body_at + body_bytes],
        _topic(bytes(view[topic_at : properties_at - 2])),
        view[properties_at:end],
    )  # fmt: skip


def properties_part(buffer: memoryview, at: int, size: int) -> memoryview:
    """A view of the properties of the record with a given size at an offset of a buffer.

    Raises:
        CorruptRecord: the lengths contradict each other.
    """
    # For scans that read many records and want few, such as SQL92 filters (decision 3): it reads
    # three lengths instead of all fields.
    end = at + size
    try:
        hosts = buffer[at + SYS_FLAG_AT + 3] & HOSTS_MASK
        start = at + (_HEADS[hosts].size if hosts else BODY_AT)
        (body_bytes,) = _INT.unpack_from(buffer, start - 4)
        start += body_bytes
        if buffer[at + 7] == _MAGIC_END:
            start += 3 + buffer[start]
        else:
            start += 4 + (buffer[start] << 8 | buffer[start + 1])
        if body_bytes < 0 or end - start != buffer[start - 2] << 8 | buffer[start - 1]:
            raise CorruptRecord("the properties do not end with the record")
    except (IndexError, struct.error) as error:
        raise CorruptRecord("a record's lengths lead out of it") from error
    return buffer[start:end]


@lru_cache(maxsize=4096)
def _topic(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _queue(topic: bytes, broker_name: str, number: int) -> QueueId:
    return QueueId(_topic(topic), broker_name, number)


def decode(
    buffer: Buffer, at: int = 0, broker_name: str = "", *, opens_body: bool = False
) -> StoredMessage:
    """Decodes the message whose record is at an offset of a buffer.

    Args:
        opens_body: opens a compressed body, and clears its bit in the system flag. A body that
            cannot be opened stays compressed, with the bit set: see `compression.open_body`.

    Raises:
        CorruptRecord: there is no whole record.
    """
    raw = buffer if isinstance(buffer, bytes) else _bytes_of(buffer, at)
    return _decode(
        raw, at if raw is buffer else 0, broker_name, unbounded() if opens_body else None
    )


def _bytes_of(buffer: Buffer, at: int) -> bytes:
    """A copy of the record at an offset; it is shorter if the record's size field is wrong."""
    return bytes(buffer[at : at + int.from_bytes(buffer[at : at + 4], "big")])


def _decode(raw: bytes, at: int, broker_name: str, opening: Opening | None) -> StoredMessage:
    # Every message that is pulled passes here. Slices of `bytes` are copies, which do not keep the
    # reply alive; queues and hosts repeat, so they come from caches.
    fields, body_at, topic_at, properties_at, end = _take_apart(raw, at)
    (
        size, _, crc, number, flag, queue_offset, log_offset, sys_flag, born_ms, born_host,
        stored_ms, store_host, reconsume_times, prepared_offset, body_bytes,
    ) = fields  # fmt: skip
    body = raw[body_at : body_at + body_bytes]
    if opening is not None and sys_flag & COMPRESSED:
        body, sys_flag = opening.open(body, sys_flag, queue_offset)
    return StoredMessage(
        _queue(raw[topic_at : properties_at - 2], broker_name, number),
        queue_offset,
        log_offset,
        body,
        raw[properties_at:end],
        flag,
        sys_flag,
        born_ms,
        unpack(born_host),
        stored_ms,
        unpack(store_host),
        reconsume_times,
        prepared_offset,
        size,
        crc,
    )


def scan(
    buffer: Buffer, broker_name: str = "", *, opening: Opening | None = None
) -> Iterator[StoredMessage]:
    """Yields the messages of a pull reply's body, also those of batches.

    Args:
        opening: opens compressed bodies; the scan ends where it stops, see `Opening.stopped_at`.

    Raises:
        CorruptRecord: bytes are no record; the messages before them have been yielded.
    """
    raw = bytes(buffer)
    at, end = 0, len(raw)
    while at < end:
        try:
            message = _decode(raw, at, broker_name, opening)
        except OpeningStopped:
            return
        at += message.record_bytes
        if message.sys_flag & WRAPPED == WRAPPED:
            yield from unwrapped(message)
        else:
            yield message
