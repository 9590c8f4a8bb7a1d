from __future__ import annotations

import contextlib
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.message.record import body_crc
from sprocket.protocol import registration
from sprocket.protocol.bodies import DataVersion, RegisterBody, TopicConfig, TopicTable


def body_of(*topics: TopicConfig) -> RegisterBody:
    table = TopicTable(
        data_version=DataVersion(3, 0, 1_700_000_000_000),
        topic_config_table={topic.topic_name: topic for topic in topics},
        topic_queue_mapping_info_map={},
    )
    return RegisterBody([], table)


ORDERS = TopicConfig(
    attributes={"message.type": "NORMAL", "a b": "c d"},
    perm=6,
    read_queue_nums=4,
    write_queue_nums=8,
    topic_name="orders",
)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_was_written_is_read(compressed: bool) -> None:
    body = body_of(ORDERS, TopicConfig(topic_name="%RETRY%g", read_queue_nums=1))
    body.filter_server_list = ["1.2.3.4:5"]
    data = registration.encode(body, compressed=compressed)
    assert registration.decode(data, compressed=compressed) == body


def test_mappings_of_static_topics_are_kept() -> None:
    body = body_of()
    body.topics.topic_queue_mapping_info_map = {"s": {"topic": "s", "currIdMap": {0: 1}}}
    data = registration.encode(body, compressed=True)
    assert registration.decode(data, compressed=True) == body


def compressed_by_4x(*topics: bytes) -> bytes:
    parts = [b'{"counter":1,"timestamp":2}', None, *topics, b"[]"]
    sized = [struct.pack(">I", len(p)) + p if p is not None else struct.pack(">I", len(topics))
             for p in parts]  # fmt: skip
    return zlib.compress(b"".join(sized))


def test_the_form_of_4x_without_attributes_and_mappings_is_read() -> None:
    body = registration.decode(compressed_by_4x(b"t 4 8 6 SINGLE_TAG"), compressed=True)
    assert body.topics.data_version == DataVersion(1, 0, 2)
    topic = body.topics.topic_config_table["t"]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (4, 8, 6)


def test_attributes_that_cannot_be_read_are_none() -> None:
    body = registration.decode(compressed_by_4x(b"t 4 8 6 SINGLE_TAG {oops"), compressed=True)
    assert body.topics.topic_config_table["t"].attributes == {}


@pytest.mark.parametrize("topic", [b"", b"t", b"t 4 8 6", b"t x 8 6 SINGLE_TAG"])
def test_a_topic_that_is_none_is_refused(topic: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="no topic"):
        registration.decode(compressed_by_4x(topic), compressed=True)


def test_a_bomb_is_refused_before_it_is_open() -> None:
    bomb = zlib.compress(bytes(64 * 2**20), 9)
    with pytest.raises(RemoteProtocolError, match="too long"):
        registration.decode(bomb, compressed=True, bytes_max=2**20)


@pytest.mark.parametrize(
    "opened",
    [
        b"",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\x02{}\x7f\xff\xff\xff",
        b"\0\0\0\x02{}\0\0\0\0\0\0\0\x02{}",
    ],
)
def test_lengths_that_lie_are_refused(opened: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        registration.decode(zlib.compress(opened), compressed=True)


def test_plain_json_that_claims_to_be_compressed_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="opened"):
        registration.decode(b'{"filterServerList":[]}', compressed=True)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_a_registration_or_refused(data: bytes, is_packed: bool) -> None:
    packed = zlib.compress(data) if is_packed else data
    with contextlib.suppress(RemoteProtocolError):
        registration.decode(packed, compressed=True)


def test_the_checksum_has_no_sign() -> None:
    assert body_crc(b"") == 0
    assert body_crc(b"a") == zlib.crc32(b"a") & 0x7FFFFFFF
