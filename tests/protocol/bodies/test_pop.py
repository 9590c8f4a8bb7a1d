"""Records about popped messages: the bytes that Java makes, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.bodies.pop import (
    AckRecord,
    CheckPoint,
    PopKey,
    key_of,
    read_record,
    unique_key,
)

_POP_MS = 1700000000000
_CHECK = CheckPoint(
    broker="broker-a", group="g", diffs=[0, 2], invisible_ms=60000, count=2, pop_ms=_POP_MS,
    queue_number=3, revive_ms=_POP_MS + 60000, start_offset=5, topic="t",
)  # fmt: skip
_ACK = AckRecord(offset=7, group="g", pop_ms=_POP_MS, queue_number=3, start_offset=5, topic="t")
_BATCH = AckRecord(
    offset=-1, offsets=[5, 7], broker="broker-a", group="g", pop_ms=_POP_MS, queue_number=3,
    start_offset=5, topic="t",
)  # fmt: skip
_KEY = PopKey("t", "g", 3, 5, _POP_MS, "broker-a")


@pytest.mark.parametrize(("tag", "record", "text"), [
    ("ck", _CHECK, '{"bm":0,"bn":"broker-a","c":"g","d":[0,2],"it":60000,"n":2,"pt":1700000000000,'
     '"q":3,"reviveTime":1700000060000,"ro":0,"so":5,"t":"t"}'),
    ("ack", _ACK, '{"ao":7,"c":"g","pt":1700000000000,"q":3,"so":5,"t":"t"}'),
    ("bAck", _BATCH, '{"ao":-1,"aol":[5,7],"bn":"broker-a","c":"g","pt":1700000000000,"q":3,'
     '"so":5,"t":"t"}'),
])  # fmt: skip
def test_records_are_those_that_java_writes(
    tag: str, record: CheckPoint | AckRecord, text: str
) -> None:
    assert record.encode() == text.encode()
    assert read_record(tag, text.encode()) == record
    assert key_of(record, "broker-a") == _KEY


def test_the_unique_keys_are_those_of_java() -> None:
    assert unique_key(_CHECK) == "t@3@5@g@1700000000000@broker-a@ck"
    assert unique_key(_ACK) == "t@3@7@g@1700000000000@null@ack"


def test_offsets_follow_one_another_where_java_named_none() -> None:
    assert _CHECK.offsets() == [5, 7]
    assert CheckPoint(start_offset=5, count=3).offsets() == [5, 6, 7]
    assert _ACK.all_offsets() == [7]
    assert _BATCH.all_offsets() == [5, 7]
    assert _CHECK.due_ms == _POP_MS + 60000


def test_what_is_no_record_is_refused_or_ignored() -> None:
    assert read_record(None, b"x") is None
    assert read_record("cc", b"{}") is None
    assert key_of(CheckPoint(topic="t"), "b") is None
    with pytest.raises(RemoteProtocolError):
        read_record("ck", b'{"so":"x"}')


_longs = st.integers(0, (1 << 63) - 1)


@given(_longs, _longs, st.lists(st.integers(0, 1 << 30), min_size=1, max_size=32), st.text())
def test_a_check_point_reads_back(start: int, pop_ms: int, diffs: list[int], topic: str) -> None:
    point = CheckPoint(start_offset=start, pop_ms=pop_ms, diffs=diffs, topic=topic)
    assert read_record("ck", point.encode()) == point
