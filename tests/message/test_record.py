"""Records: written, read, and never misread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import CorruptRecord
from sprocket.message import record
from sprocket.message.compression import COMPRESSED, Compression, compress
from sprocket.message.hosts import pack
from sprocket.message.opening import Opening

V4 = pack("10.1.2.3:4000")
V6 = pack("[2001:db8::1]:4000")

drafts = st.builds(
    record.Draft,
    topic=st.text(alphabet="abc%_-", min_size=1, max_size=200),
    queue_number=st.integers(0, 2**31 - 1),
    body=st.binary(max_size=60),
    properties=st.binary(max_size=60),
    tag_code=st.just(0),
    flag=st.integers(-(2**31), 2**31 - 1),
    sys_flag=st.sampled_from([0, 0x4, 0x8, 0x301]),
    born_ms=st.integers(0, 2**62),
    born_host=st.sampled_from([V4, V6]),
    reconsume_times=st.integers(0, 100),
    prepared_offset=st.integers(0, 2**62),
)


def encoded(draft: record.Draft, store_host: bytes = V4, **places: int) -> bytes:
    places = {"log_offset": 0, "queue_offset": 0, "stored_ms": 0} | places
    topic = record.topic_part(draft.topic.encode())
    raw = record.Encoder(store_host).encode(draft, topic, **places)
    assert len(raw) == record.record_bytes(draft, topic, store_host)
    return raw


def a_draft(**changes: object) -> record.Draft:
    fields: dict[str, object] = {
        "topic": "orders", "queue_number": 1, "body": b"hello", "properties": b"TAGS\x01a\x02",
        "tag_code": 97, "flag": 0, "sys_flag": 0, "born_ms": 1, "born_host": V4,
    }  # fmt: skip
    return record.Draft(**(fields | changes))  # type: ignore[arg-type]


@given(drafts, st.sampled_from([V4, V6]), st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_draft_comes_back_as_it_was(
    draft: record.Draft, store_host: bytes, log_offset: int, queue_offset: int
) -> None:
    raw = encoded(draft, store_host, log_offset=log_offset, queue_offset=queue_offset, stored_ms=7)
    found = record.parse(b"junk" + raw + b"more", 4)
    assert (found.topic, found.queue_number, bytes(found.body), bytes(found.properties)) == (
        draft.topic, draft.queue_number, draft.body, draft.properties,
    )  # fmt: skip
    assert (found.log_offset, found.queue_offset, found.stored_ms) == (log_offset, queue_offset, 7)
    assert (found.born_host, found.store_host) == (draft.born_host, store_host)
    assert (found.flag, found.born_ms, found.reconsume_times, found.prepared_offset) == (
        draft.flag, draft.born_ms, draft.reconsume_times, draft.prepared_offset,
    )  # fmt: skip
    assert found.sys_flag & ~0x30 == draft.sys_flag
    assert found.size == len(raw)
    assert found.body_crc == record.body_crc(draft.body)


@pytest.mark.parametrize(
    ("born", "store", "bits"), [(V4, V4, 0), (V6, V4, 0x10), (V4, V6, 0x20), (V6, V6, 0x30)]
)
def test_each_address_has_its_own_bit(born: bytes, store: bytes, bits: int) -> None:
    draft = a_draft(born_host=born, sys_flag=0x30)
    assert record.parse(encoded(draft, store)).sys_flag == bits


def test_a_topic_over_127_bytes_takes_the_second_magic() -> None:
    for length, magic in ((127, "daa320a7"), (128, "daa320ab"), (300, "daa320ab")):
        raw = encoded(a_draft(topic="t" * length))
        assert raw[4:8].hex() == magic
        assert record.decode(raw).topic == "t" * length


@given(drafts, st.data())
def test_a_record_cut_anywhere_is_refused(draft: record.Draft, data: st.DataObject) -> None:
    raw = encoded(draft)
    with pytest.raises(CorruptRecord):
        record.parse(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(st.binary(max_size=300))
def test_garbage_is_no_record(raw: bytes) -> None:
    with pytest.raises(CorruptRecord):
        record.parse(raw)


@given(drafts, st.data())
def test_a_changed_byte_is_read_or_refused_and_nothing_else(
    draft: record.Draft, data: st.DataObject
) -> None:
    raw = bytearray(encoded(draft))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        record.decode(bytes(raw))
    except CorruptRecord:
        return


@given(drafts, st.data())
def test_the_properties_part_of_a_record_is_what_parsing_finds(
    draft: record.Draft, data: st.DataObject
) -> None:
    before, raw = data.draw(st.binary(max_size=50)), bytearray(encoded(draft))
    view = memoryview(before + raw + b"behind")
    assert record.properties_part(view, len(before), len(raw)) == draft.properties
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = record.properties_part(memoryview(raw), 0, len(raw))
    except CorruptRecord:
        return
    assert raw.endswith(found)


@given(st.binary(max_size=120))
def test_garbage_has_no_properties_part_or_one_at_its_end(raw: bytes) -> None:
    try:
        found = record.properties_part(memoryview(raw), 0, len(raw))
    except CorruptRecord:
        return
    assert raw.endswith(found)


def test_a_pull_body_is_scanned_record_by_record() -> None:
    bodies = [b"a", b"", b"c" * 1000]
    joined = b"".join(
        encoded(a_draft(body=body), queue_offset=n, log_offset=n * 10)
        for n, body in enumerate(bodies)
    )
    for buffer in (joined, bytearray(joined), memoryview(joined)):
        found = list(record.scan(buffer, "broker-a"))
        assert [m.body for m in found] == bodies
        assert [m.queue_offset for m in found] == [0, 1, 2]
        assert found[0].queue == ("orders", "broker-a", 1)
        assert found[0].properties == {"TAGS": "a"}
        assert (found[0].born_host, found[0].store_host) == ("10.1.2.3:4000", "10.1.2.3:4000")


def test_a_scan_gives_what_comes_before_the_damage() -> None:
    joined = encoded(a_draft(body=b"good")) + encoded(a_draft())[:-1]
    scanned = record.scan(joined)
    assert next(scanned).body == b"good"
    with pytest.raises(CorruptRecord):
        next(scanned)


def test_a_compressed_body_is_opened_when_asked() -> None:
    draft = a_draft(body=compress(b"x" * 5000, Compression.ZLIB), sys_flag=0x301)
    raw = encoded(draft)
    assert record.decode(raw).body == draft.body
    opened = record.decode(raw, opens_body=True)
    assert opened.body == b"x" * 5000
    assert opened.sys_flag == 0x300


def test_a_body_that_cannot_be_opened_spoils_only_itself() -> None:
    joined = b"".join(
        encoded(a_draft(body=body, sys_flag=flag))
        for body, flag in ((b"not zlib", 0x301), (b"unknown", 0x701), (b"plain", 0))
    )
    found = list(record.scan(joined, opening=Opening()))
    assert [m.body for m in found] == [b"not zlib", b"unknown", b"plain"]
    assert [bool(m.sys_flag & COMPRESSED) for m in found] == [True, True, False]
