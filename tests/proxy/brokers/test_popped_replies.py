"""Receipts, and replies to pops that are not what they should be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.message.hosts import pack
from sprocket.message.pop_handle import PopHandle
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Encoder, topic_part
from sprocket.protocol.command import Command
from sprocket.protocol.requests.pop import InvisibleReply, PopMessage, PopReply
from sprocket.proxy.brokers.popped_replies import ReceiptHandle, read_popped
from sprocket.proxy.messages.statuses import CallRefused

NUMBERS = st.integers(0, (1 << 62))


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from("012"), NUMBERS)
def test_a_receipt_comes_back(start: int, pop: int, revive: int, kind: str, log: int) -> None:
    made = ReceiptHandle(PopHandle(start, pop, 30_000, revive, kind, "broker-a", 3, 5), log)
    assert ReceiptHandle.parse(made.encode()) == made


def test_a_handle_of_a_remoting_client_is_a_receipt_without_a_place() -> None:
    handle = PopHandle(1, 2, 3, 4, "1", "b", 5, 6)
    receipt = ReceiptHandle.parse(handle.encode())
    assert (receipt.handle, receipt.log_offset) == (handle, -1)
    assert receipt.topic("t", "g") == "%RETRY%g_t"
    assert ReceiptHandle.parse(f"{handle.encode()} -7").log_offset == -1


@pytest.mark.parametrize("text", ["", "x", "1 2 3", "1 2 3 4 9 b 5 6", "9" * 5000])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(CallRefused):
        ReceiptHandle.parse(text)


def test_a_changed_receipt_has_a_check_point_of_its_own() -> None:
    reply = InvisibleReply(pop_time=100, invisible_time=50, revive_qid=2)
    receipt = ReceiptHandle(PopHandle(1, 2, 3, 4, "0", "b", 5, 6), 7)
    assert receipt.changed(reply) == ReceiptHandle(PopHandle(6, 100, 50, 2, "0", "b", 5, 6), 7)
    in_order = ReceiptHandle(PopHandle(1, 2, 3, 999, "0", "b", 5, 6), 7)
    assert in_order.changed(reply).handle.start_offset == 1


def record(offset: int, *, queue: int = 0, **properties: str) -> bytes:
    host = pack("10.0.0.1:10911")
    draft = Draft("t", queue, b"x", encode(properties).encode(), 0, 0, 0, 1, host)
    return Encoder(host).encode(draft, topic_part(b"t"), 4096, offset, 2)


def reply(body: bytes, **more: Any) -> Command:
    values = {"pop_time": 10, "invisible_time": 20, "revive_qid": 3, "rest_num": 0}
    return Command(0, body=body, header=PopReply(**(values | more)))


def asked(**more: Any) -> PopMessage:
    values = {
        "consumer_group": "g", "topic": "t", "queue_id": -1, "max_msg_nums": 2,
        "invisible_time": 20, "poll_time": 0, "born_time": 0, "init_mode": 0,
    }  # fmt: skip
    return PopMessage(**(values | more))


def test_each_message_has_its_receipt() -> None:
    found = read_popped(
        reply(record(5) + record(6), start_offset_info="0 0 5", msg_offset_info="0 0 5,6"),
        asked(),
        "b",
    )
    assert [each.receipt.encode() for each in found] == [
        "5 10 20 3 0 b 0 5 4096", "5 10 20 3 0 b 0 6 4096",
    ]  # fmt: skip


def test_a_message_that_comes_again_bears_its_handle() -> None:
    handle = PopHandle(1, 10, 20, 3, "1", "b", 0, 9).encode()
    old = PopHandle(1, 9, 20, 3, "1", "b", 0, 9).encode()
    found = read_popped(
        reply(
            record(7, POP_CK=handle) + record(5, POP_CK=old),
            start_offset_info="1 0 1;0 0 5",
            msg_offset_info="1 0 9;0 0 5",
        ),
        asked(),
        "b",
    )
    assert [each.receipt.handle.kind for each in found] == ["1", "0"]
    assert found[0].receipt.handle.encode() == handle


def test_pops_in_order_say_how_often() -> None:
    found = read_popped(
        reply(
            record(5) + record(6),
            start_offset_info="0 0 5",
            msg_offset_info="0 0 5,6",
            order_count_info="0 qo0%6 4;0 0 1",
        ),
        asked(order=True),
        "b",
    )
    assert [each.message.reconsume_times for each in found] == [1, 4]


@pytest.mark.parametrize(
    "wrong",
    [
        reply(record(5), start_offset_info="x", msg_offset_info="0 0 5"),
        reply(record(5), start_offset_info="0 1 5", msg_offset_info="0 1 5"),
        reply(record(5), start_offset_info="0 0 5", msg_offset_info="0 0 6"),
        reply(record(5)),
        reply(record(5)[:-1], start_offset_info="0 0 5", msg_offset_info="0 0 5"),
        reply(record(5) * 3, start_offset_info="0 0 5", msg_offset_info="0 0 5"),
    ],
)
def test_a_broken_reply_is_refused(wrong: Command) -> None:
    with pytest.raises(RemoteProtocolError):
        read_popped(wrong, asked(), "b")
