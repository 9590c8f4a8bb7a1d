"""The bytes of a broker's registration: plain JSON, or the compressed form.

The compressed form is one zlib stream (RFC 1950, best compression) of:

    | what                    | content                                                    |
    |-------------------------|------------------------------------------------------------|
    | data version            | JSON                                                       |
    | number of topics        | 4 bytes, then that many topics:                            |
    | a topic                 | `name reads writes perm filterType attributes`, blanks     |
    |                         | between; attributes are JSON, 4.x leaves them out          |
    | filter servers          | JSON list                                                  |
    | number of mappings      | 4 bytes, then that many mappings (5.x only)                |
    | a mapping               | JSON, of a static topic                                    |

A length in 4 bytes precedes every JSON and every topic; numbers are big-endian. A topic's order
flag and system flag are not in it. Source: RegisterBrokerBody, TopicConfig of RocketMQ 4.9 and
5.x.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import msgspec

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import lenient_json
from sprocket.protocol.bodies.body import DataVersion
from sprocket.protocol.bodies.topic import RegisterBody, TopicConfig, TopicTable
from sprocket.protocol.command import Buffer

#: The longest accepted registration, after decompression.
BYTES_MAX = 16 * 1024 * 1024

_NUMBER = struct.Struct(">I")


def encode(body: RegisterBody, *, compressed: bool = False) -> bytes:
    """Encodes a registration."""
    if not compressed:
        return body.encode()
    table = body.topics
    parts = [_sized(table.data_version.encode()), _NUMBER.pack(len(table.topic_config_table))]
    parts += [_sized(_topic_text(topic)) for topic in table.topic_config_table.values()]
    parts.append(_sized(msgspec.json.encode(body.filter_server_list)))
    mappings = table.topic_queue_mapping_info_map or {}
    parts.append(_NUMBER.pack(len(mappings)))
    parts += [_sized(lenient_json.write(mapping)) for mapping in mappings.values()]
    return zlib.compress(b"".join(parts), 9)


def decode(data: Buffer, *, compressed: bool = False, bytes_max: int = BYTES_MAX) -> RegisterBody:
    """Decodes a registration.

    Args:
        data: the body as received.
        compressed: the flag of the header.
        bytes_max: the most bytes that it may have after decompression.

    Raises:
        RemoteProtocolError: it is no registration, or too long.
    """
    # The parts have no names, only an order. Brokers of 4.9 end after the filter servers; whether
    # mappings follow shows only in whether bytes are left.
    if not compressed:
        return RegisterBody.decode(data)
    reader = _PartReader(_opened(data, bytes_max))
    version = DataVersion.decode(reader.sized())
    topics = [_topic(reader.sized()) for _ in range(reader.count())]
    filter_servers = lenient_json.parse(reader.sized())
    mappings: dict[str, Any] = {}
    if reader.has_more:
        for _ in range(reader.count()):
            mapping = lenient_json.parse(reader.sized())
            if not isinstance(mapping, dict):
                raise RemoteProtocolError("a mapping in the registration is no object")
            mappings[str(mapping.get("topic"))] = mapping
    if not isinstance(filter_servers, list):
        raise RemoteProtocolError("filter servers in the registration are no list")
    table = TopicTable(
        data_version=version,
        topic_config_table={topic.topic_name: topic for topic in topics},
        topic_queue_mapping_info_map=mappings,
    )
    return RegisterBody([str(server) for server in filter_servers], table)


def _opened(data: Buffer, bytes_max: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        opened = stream.decompress(data, bytes_max)
    except zlib.error as error:
        raise RemoteProtocolError(f"the registration cannot be opened: {error}") from None
    if not stream.eof:
        why = "is too long" if len(opened) >= bytes_max else "ends too early"
        raise RemoteProtocolError(f"the compressed registration {why}")
    return opened


def _sized(part: bytes) -> bytes:
    return _NUMBER.pack(len(part)) + part


def _topic_text(topic: TopicConfig) -> bytes:
    attributes = msgspec.json.encode(topic.attributes).decode()
    numbers = f"{topic.read_queue_nums} {topic.write_queue_nums} {topic.perm}"
    return f"{topic.topic_name} {numbers} {topic.topic_filter_type} {attributes}".encode()


def _topic(text: bytes) -> TopicConfig:
    parts = text.decode("utf-8", "replace").split(" ", 5)
    try:
        name, reads, writes, perm, filter_type = parts[:5]
        topic = TopicConfig(
            topic_name=name,
            read_queue_nums=int(reads),
            write_queue_nums=int(writes),
            perm=int(perm),
            topic_filter_type=filter_type,
        )
    except ValueError:
        raise RemoteProtocolError(f"no topic in the registration: {parts[:5]}") from None
    if len(parts) == 6:
        topic.attributes = _attributes(parts[5])
    return topic


def _attributes(text: str) -> dict[str, str]:
    """A topic's attributes; none if they cannot be parsed, as in a Java name server."""
    try:
        found = lenient_json.parse(text.encode())
    except RemoteProtocolError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


class _PartReader:
    """Reads one part after the other."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def count(self) -> int:
        number = self._number()
        # Each part has at least a length field, so a larger number is false. The check keeps a
        # hostile number from starting a very long loop.
        if number * _NUMBER.size > len(self._data) - self._at:
            raise RemoteProtocolError(f"the registration cannot hold {number} parts")
        return number

    def sized(self) -> bytes:
        size = self._number()
        start = self._at
        self._at = start + size
        if self._at > len(self._data):
            raise RemoteProtocolError("the registration ends too early")
        return self._data[start : self._at]

    def _number(self) -> int:
        if self._at + _NUMBER.size > len(self._data):
            raise RemoteProtocolError("the registration ends too early")
        (number,) = _NUMBER.unpack_from(self._data, self._at)
        self._at += _NUMBER.size
        return int(number)
