"""Half messages in the form of Java's records, and back."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import pytest

from sprocket.base.errors import CorruptRecord
from sprocket.message.properties import decode, decode_bytes, encode
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part
from sprocket.transaction import half as halves
from sprocket.transaction.half import Half

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"


def java_records() -> list[Record]:
    found: list[Record] = []
    with tarfile.open(GOLDEN / "stores" / "clean.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            if "/commitlog/" not in member.name or not member.isfile():
                continue
            extracted = archive.extractfile(member)
            assert extracted is not None
            raw, at = extracted.read(), 0
            while at < len(raw):
                try:
                    record = parse(raw, at)
                except CorruptRecord:
                    break
                found.append(record)
                at += record.size
    return found


def test_halves_are_prepared_and_committed_like_javas() -> None:
    records = java_records()
    by_place = {r.log_offset: r for r in records if r.topic == HALF}
    committed = [r for r in records if r.topic == "StTx"]
    assert (len(by_place), len(committed)) == (9, 3)
    for seen in committed:
        half = by_place[seen.prepared_offset]
        properties = decode_bytes(half.properties)
        draft = halves.committed(half, dict(properties))
        assert (draft.topic, draft.queue_number) == ("StTx", seen.queue_number)
        assert (draft.sys_flag, draft.prepared_offset) == (seen.sys_flag, seen.prepared_offset)
        assert decode_bytes(draft.properties) == decode_bytes(seen.properties)
        before = {
            name: value
            for name, value in properties.items()
            if name not in ("REAL_TOPIC", "REAL_QID", "__transactionId__")
        }
        kept = dict(before)
        waits = halves.prepared(before, topic="StTx", queue_number=draft.queue_number)
        assert waits == properties
        assert before == kept, "what came in stays as it is"


def test_javas_word_on_what_ended_is_read_and_written_alike() -> None:
    (told,) = [r for r in java_records() if r.topic == OP]
    assert halves.ended_in(told) == [0, 1, 3, 4, 7, 6]
    draft = halves.ended([0, 1, 3, 4, 7, 6], now_ms=5, host=told.store_host)
    assert draft.body == bytes(told.body)
    assert decode(draft.properties.decode()) == decode_bytes(told.properties)


def record_of(draft: Draft, *, queue_offset: int = 3, log_offset: int = 1000) -> Record:
    raw = Encoder(b"\x7f\0\0\1\0\0\0\1").encode(
        draft,
        topic_part(draft.topic.encode()),
        log_offset=log_offset,
        queue_offset=queue_offset,
        stored_ms=77,
    )
    return parse(raw)


def a_half(**properties: str) -> Record:
    named = {"UNIQ_KEY": "u", "TRAN_MSG": "true", "PGROUP": "p", **properties}
    text = encode(halves.prepared(named, topic="T", queue_number=2)).encode()
    return record_of(Draft(HALF, 0, b"\x78\x9cbody", text, 0, 9, 1, 50, b"\x7f\0\0\1\0\0\0\2"))


def test_a_compressed_body_stays_compressed_and_marked_on_its_whole_way() -> None:
    half = a_half()
    properties = decode_bytes(half.properties)
    copy = record_of(halves.copied(half, properties, root=3, checks=1), queue_offset=8)
    shown = parse(halves.as_asked(copy, properties, offset=9, log_offset=4000))
    parked = record_of(halves.parked(copy, dict(properties)))
    resumed = record_of(halves.resumed(parked, dict(properties)))
    committed = halves.committed(resumed, dict(properties))
    for each in (half, copy, shown, parked, resumed):
        assert (bytes(each.body), each.sys_flag & 0xF, each.flag) == (b"\x78\x9cbody", 1, 9)
    assert (committed.body, committed.sys_flag) == (b"\x78\x9cbody", 1 | 8)
    assert (shown.topic, shown.queue_number) == ("T", 2)
    assert (shown.queue_offset, shown.log_offset) == (9, 4000)


def test_copies_count_and_name_the_first() -> None:
    half = a_half(CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    properties = decode_bytes(half.properties)
    copy = record_of(halves.copied(half, properties, root=3, checks=2), queue_offset=8)
    read = Half.of(decode_bytes(copy.properties), offset=8, log_offset=1, born_ms=50, stored_ms=77)
    assert read == Half(8, 3, 1, 50, 77, 60_000, 2, "T")
    assert "TRAN_PREPARED_QUEUE_OFFSET" not in decode_bytes(
        halves.committed(copy, decode_bytes(copy.properties)).properties
    )


@pytest.mark.parametrize("odd", ["-1", "x", "", "9" * 30, "٣"])
def test_odd_numbers_count_as_absent(odd: str) -> None:
    properties = {
        "TRAN_PREPARED_QUEUE_OFFSET": odd, "TRANSACTION_CHECK_TIMES": odd,
        "CHECK_IMMUNITY_TIME_IN_SECONDS": odd,
    }  # fmt: skip
    read = Half.of(properties, offset=8, log_offset=1, born_ms=50, stored_ms=77)
    assert read == Half(8, 8, 1, 77, 77)


@pytest.mark.parametrize(
    ("topic", "mark", "expected"),
    [
        ("T", "true", True), ("T", "TRUE", True), ("T", "false", False),
        ("%RETRY%g", "true", False), ("%DLQ%g", "true", False),
    ],
)  # fmt: skip
def test_what_is_a_half(topic: str, mark: str, expected: bool) -> None:
    assert halves.is_half(topic, {"TRAN_MSG": mark}) is expected
    assert not halves.is_half(topic, {})


@pytest.mark.parametrize(
    "place",
    [
        {}, {"REAL_TOPIC": "T"}, {"REAL_TOPIC": HALF, "REAL_QID": "0"},
        {"REAL_TOPIC": "T", "REAL_QID": "-1"}, {"REAL_TOPIC": "T", "REAL_QID": "9999999999"},
    ],
)  # fmt: skip
def test_a_half_that_belongs_nowhere_is_not_committed(place: dict[str, str]) -> None:
    with pytest.raises(CorruptRecord):
        halves.committed(a_half(), dict(place))


def test_javas_questions_are_put_in_the_same_form() -> None:
    path = GOLDEN / "frames" / "5.3.3-json" / "transaction.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    asked = [bytes.fromhex(row["hex"]) for row in rows if row.get("code") == 39]
    assert len(asked) == 2
    for raw in asked:
        body = raw[8 + int.from_bytes(raw[5:8], "big") :]
        record = parse(body)
        properties = decode_bytes(record.properties)
        ours = halves.as_asked(
            record, properties, offset=record.queue_offset, log_offset=record.log_offset
        )
        assert decode_bytes(parse(ours).properties) == properties
        assert ours[4:88] == body[4:88]
        assert len(ours) == len(body)
