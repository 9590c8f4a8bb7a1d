"""Transaction ids there and back, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.proxy.messages.transaction_ids import TransactionId

OFFSETS = st.integers(0, (1 << 63) - 1)


@given(st.text("ab-_@:% ", min_size=1, max_size=60), OFFSETS, OFFSETS)
def test_an_id_comes_back(broker: str, log_offset: int, queue_offset: int) -> None:
    made = TransactionId(broker, log_offset, queue_offset)
    assert TransactionId.parse(made.encode()) == made


@pytest.mark.parametrize(
    ("text", "code"),
    [("", pb.INVALID_TRANSACTION_ID), (" ", pb.INVALID_TRANSACTION_ID)]
    + [
        (text, pb.INTERNAL_SERVER_ERROR)
        for text in ("7F000001", "a@1", "a@1@-1", "a@1@x", "a@1@" + "F" * 17, "a@ 1@1", "@" * 10**6)
    ],
)
def test_what_is_no_id_is_refused(text: str, code: int) -> None:
    with pytest.raises(CallRefused) as caught:
        TransactionId.parse(text)
    assert caught.value.code == code
