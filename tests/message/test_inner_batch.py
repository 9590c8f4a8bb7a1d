"""The messages of a record that holds a batch."""

from __future__ import annotations

import pytest

from sprocket.base.errors import CorruptRecord
from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.hosts import pack
from sprocket.message.record import Draft, Encoder, scan, topic_part

HOST = pack("127.0.0.1:10911")
PARTS = [
    BatchedMessage(1, b"one", "TAGS\x01a\x02UNIQ_KEY\x01A1\x02"),
    BatchedMessage(2, b"two", "KEYS\x01k\x02UNIQ_KEY\x01A2\x02"),
]


def record(body: bytes, sys_flag: int = 0xC0) -> bytes:
    draft = Draft("t", 3, body, b"INNER_NUM\x012\x02", 0, 0, sys_flag, 5, HOST)
    return Encoder(HOST).encode(draft, topic_part(b"t"), 100, 40, 6)


def test_each_message_has_its_own_offset_properties_and_body() -> None:
    one, two, plain = scan(record(encode(PARTS)) + record(b"x", 0), "b")
    assert [each.queue_offset for each in (one, two, plain)] == [40, 41, 40]
    assert (one.body, one.flag, one.tag, one.message_id) == (b"one", 1, "a", "A1")
    assert (two.body, two.flag, two.keys, two.message_id) == (b"two", 2, ["k"], "A2")
    for each in (one, two):
        assert (each.queue.broker, each.queue.number, each.topic) == ("b", 3, "t")
        assert (each.log_offset, each.born_ms, each.stored_ms, each.sys_flag) == (100, 5, 6, 0)
        assert each.store_host == "127.0.0.1:10911"


def test_a_record_without_both_bits_is_one_message() -> None:
    for bits in (0x40, 0x80):
        assert len(list(scan(record(encode(PARTS), bits)))) == 1


def test_a_body_that_is_no_batch_is_damage() -> None:
    with pytest.raises(CorruptRecord, match="the batch at log offset 100"):
        list(scan(record(b"no batch")))
