from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.record import (
    BODY_LENGTH_AT,
    FLAG_AT,
    PREPARED_OFFSET_AT,
    QUEUE_OFFSET_AT,
    RECONSUME_TIMES_AT,
    STORED_AT,
    parse,
)
from sprocket.spark.records.heads import numbers, read_heads, window
from tests.spark.support import V4, V6, record

hosts = st.sampled_from([V4, V6])
made = st.builds(
    record,
    st.integers(0, 2**40),
    body=st.binary(max_size=5),
    flag=st.integers(-(2**31), 2**31 - 1),
    born_host=hosts,
    store_host=hosts,
)


@given(st.lists(made, max_size=5), st.data())
def test_numbers_are_those_of_each_record_whatever_its_addresses(
    records: list[bytes], data: st.DataObject
) -> None:
    starts = np.cumsum([0, *map(len, records)], dtype=np.int64)[:-1]
    found = read_heads(b"".join(records), starts)
    if data.draw(st.booleans()):
        keep = np.array([data.draw(st.booleans()) for _ in records], np.bool_)
        found = found.chosen(keep)
        records = [one for one, is_kept in zip(records, keep, strict=True) if is_kept]
    parsed = [parse(one, 0) for one in records]
    assert found.sys_flags.tolist() == [one.sys_flag for one in parsed]
    for offset, kind, wanted in (
        (FLAG_AT, "i4", [one.flag for one in parsed]),
        (QUEUE_OFFSET_AT, "i8", [one.queue_offset for one in parsed]),
        (STORED_AT, "i8", [one.stored_ms for one in parsed]),
        (RECONSUME_TIMES_AT, "i4", [one.reconsume_times for one in parsed]),
        (PREPARED_OFFSET_AT, "i8", [one.prepared_offset for one in parsed]),
        (BODY_LENGTH_AT, "i4", [len(one.body) for one in parsed]),
    ):
        assert found.of(offset, kind).tolist() == wanted


@pytest.mark.parametrize("kind", ["u1", "u2", "i4", "i8"])
def test_a_number_is_read_at_any_position(kind: str) -> None:
    buffer, size = bytes(range(1, 20)), np.dtype(kind).itemsize
    at = np.array([0, 1, 3, 19 - size], np.int64)
    wanted = [int.from_bytes(buffer[one : one + size], "big") for one in at]
    assert numbers(buffer, at, kind).tolist() == wanted
    assert len(window(buffer, kind)) == 19 - size + 1
    assert numbers(b"", at[:0], kind).tolist() == []
