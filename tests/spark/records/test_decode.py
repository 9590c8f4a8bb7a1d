from __future__ import annotations

import datetime
import json
import zlib
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import CorruptRecord
from sprocket.filter.tags import TagFilter
from sprocket.message.compression import COMPRESSED, Compression, compress
from sprocket.message.ids import offset_id
from sprocket.message.opening import Opening
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.spark.records import decode
from sprocket.spark.records.decode import Decoder
from sprocket.spark.records.schema import COLUMNS, arrow_schema
from tests.spark.support import V4, V6, record

QUEUE = QueueId("orders", "broker-a", 3)
ALL = [(column.name, column.type, True) for column in COLUMNS]
GOLDEN = Path(__file__).parents[2] / "golden" / "vectors" / "record_examples.json"


def rows(
    buffer: bytes,
    *names: str,
    tags: str = "*",
    start: int = 0,
    end: int = 1 << 62,
    types: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    chosen = [one for one in ALL if not names or one[0] in names]
    chosen = [(name, (types or {}).get(name, kind), is_null) for name, kind, is_null in chosen]
    decoder = Decoder(arrow_schema(chosen), TagFilter.parse(tags))
    found = []
    for batch in decoder.decode(buffer, QUEUE, start, end):
        batch.validate(full=True)
        assert batch.num_rows
        found += batch.to_pylist()
    for row in found:
        if "properties" in row:
            row["properties"] = dict(row["properties"])
    return found


def time(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


hosts = st.sampled_from([V4, V6])
texts = st.one_of(
    st.sampled_from(
        [
            b"", b"KEYS\x01a b\x02TAGS\x01paid\x02", b"TAGS\x01paid\x02UNIQ_KEY\x01AB\x02",
            "r\x01é\x02KEYS\x01ключ".encode(), b"x\x01y", b"=\x01 \x02", b"TAG\x01p\x02", b"\x02",
        ]
    ),
    st.binary(max_size=30),
    st.lists(st.sampled_from([b"TAGS", b"KEYS", b"v", b"\x01", b"\x02", b"\xff", b"\0"])).map(
        b"".join
    ),
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> list[bytes]:
    made = []
    for offset in range(draw(st.integers(0, 6))):
        body = draw(st.binary(max_size=20))
        sys_flag = 0
        kind = draw(st.sampled_from([None, *Compression]))
        if kind is not None:
            sys_flag = kind.sys_flag
            body = compress(body, kind) if draw(st.booleans()) else body
        made.append(
            record(
                offset,
                body=body,
                properties=draw(texts),
                topic=draw(st.sampled_from(["orders", "t" * 127, "t" * 130])),
                flag=draw(st.integers(-(2**31), 2**31 - 1)),
                sys_flag=sys_flag,
                born_ms=draw(st.integers(0, 2**41)),
                born_host=draw(hosts),
                store_host=draw(hosts),
                queue_number=3,
            )
        )
    return made


@settings(max_examples=150)
@given(records())
def test_columns_are_what_reading_record_by_record_gives(made: list[bytes]) -> None:
    buffer = b"".join(made)
    messages = list(scan(buffer, "broker-a", opening=Opening()))
    found = rows(buffer)
    assert len(found) == len(messages)
    for row, message, raw in zip(found, messages, made, strict=True):
        assert row["topic"] == "orders"
        assert (row["broker"], row["queue_id"]) == ("broker-a", 3)
        assert row["queue_offset"] == message.queue_offset
        assert row["log_offset"] == message.log_offset
        assert row["key"] == message.properties.get("KEYS")
        assert row["tag"] == message.tag
        assert row["properties"] == message.properties
        assert row["body"] == message.body
        assert row["flag"] == message.flag
        assert row["born_timestamp"] == time(message.born_ms)
        assert row["store_timestamp"] == time(message.stored_ms)
        assert row["born_host"] == message.born_host
        assert row["store_host"] == message.store_host
        assert row["record_bytes"] == len(raw)
        assert row["body_crc"] == message.body_crc
        assert row["reconsume_times"] == 0
        assert row["prepared_offset"] == 0
        assert row["message_id"] == message.properties.get("UNIQ_KEY", row["offset_id"])


def test_records_of_java_come_with_every_kind_of_address() -> None:
    for example in json.loads(GOLDEN.read_text())["records"]:
        (row,) = rows(bytes.fromhex(example["recordHex"]))
        assert row["offset_id"] == row["message_id"] == example["decodedMsgId"]
        assert row["properties"] == example["properties"]
        assert row["tag"] == "T"
        assert row["body"] == b"hello"
        assert (row["queue_id"], row["queue_offset"], row["flag"]) == (3, 7, 9)
        assert row["record_bytes"] == example["storeSizeInRecord"]
        assert (row["reconsume_times"], row["prepared_offset"]) == (2, 55)


def test_only_the_offsets_asked_for_become_rows() -> None:
    buffer = b"".join(record(offset) for offset in range(10))
    found = rows(buffer, "queue_offset", start=3, end=6)
    assert [row["queue_offset"] for row in found] == [3, 4, 5]


def test_tags_are_compared_themselves_not_by_hash() -> None:
    # "Aa" and "BB" have one hash, and a broker compares hashes only.
    texts = [b"TAGS\x01Aa\x02", b"TAGS\x01BB\x02", b"", b"x\x01Aa\x02"]
    buffer = b"".join(record(n, properties=text) for n, text in enumerate(texts))
    assert [row["queue_offset"] for row in rows(buffer, "queue_offset", tags="Aa")] == [0]
    assert [row["queue_offset"] for row in rows(buffer, "queue_offset", tags="Aa||BB")] == [0, 1]


def test_a_body_that_cannot_be_opened_stays_as_it_is() -> None:
    flag = Compression.ZLIB.sys_flag
    good, bad = zlib.compress(b"good"), b"\x78\x9c-no stream"
    buffer = record(0, body=good, sys_flag=flag) + record(1, body=bad, sys_flag=flag)
    assert [row["body"] for row in rows(buffer, "body")] == [b"good", bad]


def test_a_body_may_be_asked_for_as_text() -> None:
    buffer = record(0, body="é".encode()) + record(1, body=b"\xff!")
    found = rows(buffer, "body", types={"body": "string"})
    assert [row["body"] for row in found] == ["é", "\ufffd!"]


def test_times_that_nobody_can_show_are_set_to_the_edge() -> None:
    buffer = record(0, born_ms=2**62) + record(1, born_ms=-(2**62))
    found = [row["born_timestamp"].year for row in rows(buffer, "born_timestamp")]
    assert found == [9999, 1]


def test_no_records_are_no_rows() -> None:
    assert rows(b"") == []
    assert rows(record(5), start=6) == []


def test_an_id_is_made_up_from_the_brokers_where_the_sender_gave_none() -> None:
    buffer = record(7, properties=b"UNIQ_KEY\x01AB\x02") + record(8, properties=b"")
    ids = [row["message_id"] for row in rows(buffer, "message_id")]
    assert ids == ["AB", offset_id(V4, 800)]


@pytest.mark.parametrize("cut", [1, 3, 50, 90, 100])
def test_a_record_that_is_cut_is_an_error(cut: int) -> None:
    whole = record(0, body=b"b" * 40)
    with pytest.raises(CorruptRecord):
        rows(whole + whole[:cut])


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, b"\0\0\0\x10"),
        (4, b"\0\0\0\0"),
        (84, b"\xff\xff\xff\xff"),
        (84, b"\0\1\0\0"),
        (84, b"\x7f\xff\xff\xff"),
        (92, b"\xff"),
        (99, b"\xff\xff"),
        (36, b"\0\0\0\x30"),
    ],
)
def test_lengths_that_lie_are_found_and_the_record_is_named(at: int, value: bytes) -> None:
    bad = bytearray(record(41))
    bad[at : at + len(value)] = value
    with pytest.raises(CorruptRecord, match="record"):
        rows(record(40) + bytes(bad) + record(42))


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_a_clear_error(noise: bytes) -> None:
    for buffer in (noise, record(0) + noise, len(noise).to_bytes(4, "big") + noise):
        try:
            rows(buffer)
        except CorruptRecord:
            continue


def test_columns_have_the_types_that_spark_expects() -> None:
    schema = arrow_schema(ALL)
    assert schema.field("store_timestamp").type == pa.timestamp("us", tz="UTC")
    assert schema.field("properties").type == pa.map_(pa.string(), pa.string())
    assert schema.field("queue_offset").type == pa.int64()


@given(records(), st.integers(0, 30))
def test_batches_of_opened_bodies_are_bounded_and_leave_nothing_out(
    made: list[bytes], bytes_max: int
) -> None:
    buffer = b"".join(made)
    whole = rows(buffer)
    with mock.patch.object(decode, "OPENED_BYTES", bytes_max):
        assert rows(buffer) == whole
        decoder = Decoder(arrow_schema(ALL), TagFilter.parse("*"))
        for batch in decoder.decode(buffer, QUEUE, 0, 1 << 62):
            flags = batch.column("sys_flag").to_pylist()
            bodies = batch.column("body").to_pylist()
            opened = [len(body) for body, f in zip(bodies, flags, strict=True) if f & COMPRESSED]
            assert sum(opened[:-1]) < bytes_max or len(opened) < 2
