"""Messages as clients get them."""

from __future__ import annotations

import zlib
from hashlib import md5
from typing import Any

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.properties import RESERVED, encode
from sprocket.message.queue import QueueId
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.checks import has_control
from sprocket.proxy.messages.delivered_messages import fill_message, opening_of_answer
from sprocket.proxy.messages.sent_messages import read_message
from tests.proxy.world import message

NOW = 2_000_000_000_000


def stored(body: bytes = b"x", text: str = "", **more: Any) -> StoredMessage:
    values: dict[str, Any] = {
        "queue": QueueId("orders", "broker-a", 3),
        "queue_offset": QueueOffset(7),
        "log_offset": LogOffset(4096),
        "body": body,
        "as_read": text.encode(),
        "flag": 0,
        "sys_flag": 0,
        "born_ms": 1_234,
        "born_host": "10.0.0.3:5000",
        "stored_ms": 5_678,
        "store_host": "10.0.0.1:10911",
        "reconsume_times": 2,
        "prepared_offset": 0,
        "record_bytes": 100,
        "body_crc": 0,
    }
    return StoredMessage(**(values | more))


def delivered(found: StoredMessage, handle: str | None = None) -> pb.Message:
    made = pb.Message()
    fill_message(made, found, handle=handle, opening=opening_of_answer(), now_ms=NOW)
    return made


def test_a_message_has_its_place_and_times() -> None:
    system = delivered(stored(), "0 1 2").system_properties
    assert (system.queue_id, system.queue_offset, system.delivery_attempt) == (3, 7, 3)
    assert (system.born_timestamp.seconds, system.born_timestamp.nanos) == (1, 234_000_000)
    assert (system.store_timestamp.seconds, system.store_timestamp.nanos) == (5, 678_000_000)
    assert (system.born_host, system.store_host) == ("10.0.0.3", "10.0.0.1:10911")
    assert system.receipt_handle == "0 1 2"
    assert system.message_id == "0A00000100002A9F0000000000001000"


def test_a_body_has_its_checksum() -> None:
    made = delivered(stored(b"hello"))
    assert made.system_properties.body_digest.type == pb.MD5
    assert made.system_properties.body_digest.checksum == md5(b"hello").hexdigest().upper()


def test_clients_open_what_they_know_and_the_rest_is_open() -> None:
    packed = zlib.compress(b"hello")
    made = delivered(stored(packed, sys_flag=1))
    assert (made.body, made.system_properties.body_encoding) == (packed, pb.GZIP)
    made = delivered(stored(lz4.frame.compress(b"hello"), sys_flag=1 | 1 << 8))
    assert (made.body, made.system_properties.body_encoding) == (b"hello", pb.IDENTITY)
    made = delivered(stored(b"broken", sys_flag=1 | 1 << 8))
    assert (made.body, made.system_properties.body_encoding) == (b"broken", pb.GZIP)


def test_what_is_opened_for_one_answer_is_bounded() -> None:
    packed = lz4.frame.compress(bytes(40 << 20))
    opening = opening_of_answer()
    sizes = []
    for _ in range(4):
        made = pb.Message()
        fill_message(
            made, stored(packed, sys_flag=1 | 1 << 8), handle=None, opening=opening, now_ms=NOW
        )
        sizes.append(len(made.body))
    assert sizes == [40 << 20, 40 << 20, len(packed), len(packed)]


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, pb.NORMAL),
        ({"TRAN_MSG": "true", "DELAY": "1"}, pb.TRANSACTION),
        ({"DELAY": "1"}, pb.DELAY),
        ({"TIMER_DELIVER_MS": "5"}, pb.DELAY),
        ({"__SHARDINGKEY": "g"}, pb.FIFO),
        ({"_SYS_MSG_PRIORITY_": "3"}, pb.PRIORITY),
    ],
)
def test_a_message_is_what_its_properties_say(properties: dict[str, str], kind: int) -> None:
    assert delivered(stored(text=encode(properties))).system_properties.message_type == kind


def test_what_few_messages_have() -> None:
    system = delivered(
        stored(
            text=encode(
                {
                    "__SHARDINGKEY": "g", "TRACE_CONTEXT": "00-1", "_SYS_MSG_PRIORITY_": "3",
                    "TIMER_DELIVER_MS": "5001", "DLQ_ORIGIN_TOPIC": "t",
                    "DLQ_ORIGIN_MESSAGE_ID": "i", "__BORNHOST": "laptop",
                }
            )
        )
    ).system_properties  # fmt: skip
    assert (system.message_group, system.trace_context, system.priority) == ("g", "00-1", 3)
    assert (system.delivery_timestamp.seconds, system.delivery_timestamp.nanos) == (5, 1_000_000)
    assert (system.dead_letter_queue.topic, system.dead_letter_queue.message_id) == ("t", "i")
    assert system.born_host == "laptop"


@pytest.mark.parametrize("text", ["", "x", "-5", "9" * 40, "1.5", "٣"])
def test_a_number_of_anybody_breaks_nothing(text: str) -> None:
    properties = {"TIMER_DELIVER_MS": text, "TIMER_DELAY_SEC": text, "_SYS_MSG_PRIORITY_": text}
    delivered(stored(text=encode(properties), born_ms=-5, reconsume_times=2**31 - 1))


TEXT = st.text(min_size=1, max_size=20).filter(
    lambda text: not has_control(text) and not any("\ud800" <= each <= "\udfff" for each in text)
)


@given(
    st.binary(min_size=1, max_size=50),
    st.dictionaries(TEXT.filter(lambda name: name not in RESERVED), TEXT, max_size=4),
    TEXT.filter(lambda tag: "|" not in tag and not tag.isspace()),
)
def test_what_is_sent_arrives(body: bytes, properties: dict[str, str], tag: str) -> None:
    sent = message(body, tag=tag, keys=["k1", "k2"])
    sent.user_properties.update(properties)
    taken = read_message(sent, ProxyConfig(), address="10.0.0.9:5", now_ms=NOW)
    got = delivered(stored(taken.body, taken.properties, born_ms=taken.born_ms))
    assert got.body == sent.body
    assert dict(got.user_properties) == properties
    for name in ("tag", "message_id", "born_timestamp", "born_host", "message_type"):
        assert getattr(got.system_properties, name) == getattr(sent.system_properties, name)
    assert list(got.system_properties.keys) == ["k1", "k2"]
