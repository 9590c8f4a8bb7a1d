"""Records that hold batches, taken apart."""

from __future__ import annotations

import pytest

from sprocket.base.errors import RemoteProtocolError
from sprocket.message.batch import encode
from sprocket.message.record import scan
from sprocket.spark.records.batches import taken_apart
from tests.message.test_inner_batch import PARTS, record


def test_each_message_becomes_a_record_of_its_own_and_others_stay() -> None:
    mixed = record(b"alone", 0) + record(encode(PARTS)) + record(b"last", 0)
    apart = taken_apart(mixed)
    assert [each.record_bytes for each in scan(apart)] != []
    left, right = list(scan(mixed)), list(scan(apart))
    assert [each.body for each in right] == [b"alone", b"one", b"two", b"last"]
    for before, after in zip(left, right, strict=True):
        after.record_bytes = before.record_bytes
        assert after == before
    assert taken_apart(b"") == b""


def test_a_body_that_is_no_batch_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        taken_apart(record(b"no batch"))
