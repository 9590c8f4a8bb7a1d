from __future__ import annotations

import numpy as np
import pytest

from sprocket.base.errors import CorruptRecord
from sprocket.spark.records.layout import QUEUE_OFFSET_AT, lay_out, starts
from tests.spark.support import V6, record


def test_places_follow_each_records_own_addresses() -> None:
    made = [record(1), record(2, born_host=V6), record(3, store_host=V6, born_host=V6)]
    buffer = b"".join(made)
    found = lay_out(buffer)
    assert found.ends.tolist() == np.cumsum([len(one) for one in made]).tolist()
    for begin, end in zip(found.bodies, found.body_ends, strict=True):
        assert buffer[begin:end] == b"body"
    for begin, end in zip(found.properties, found.ends, strict=True):
        assert buffer[begin:end] == b"KEYS\x01k\x02TAGS\x01paid\x02"
    assert found.of(QUEUE_OFFSET_AT, "i8").tolist() == [1, 2, 3]


def test_some_can_be_kept() -> None:
    found = lay_out(record(1) + record(2) + record(3)).filtered(np.array([True, False, True]))
    assert found.of(QUEUE_OFFSET_AT, "i8").tolist() == [1, 3]


def test_sizes_that_lead_nowhere_are_refused() -> None:
    for size in (0, -1, 90, 10_000):
        with pytest.raises(CorruptRecord):
            starts(size.to_bytes(4, "big", signed=True) + record(0)[4:])


def test_the_fault_names_the_queue_offset() -> None:
    bad = bytearray(record(41))
    bad[4:8] = b"\0\0\0\0"
    with pytest.raises(CorruptRecord, match="queue offset 41 has an unknown magic"):
        lay_out(record(40) + bytes(bad))
