"""Messages of clients: what they become for a broker, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.batch import decode as decode_batch
from sprocket.message.properties import RESERVED, decode
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.checks import has_control
from sprocket.proxy.messages.sent_messages import (
    SentMessage,
    batch_of,
    check_type,
    read_message,
    types_of_topic,
)
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.proxy.messages.times import duration, timestamp
from tests.proxy.world import message

NOW = 1_900_000_000_000


def taken(made: pb.Message, config: ProxyConfig | None = None, **more: Any) -> SentMessage:
    return read_message(made, config or ProxyConfig(), address="10.0.0.9:5", now_ms=NOW, **more)


def refusal(made: pb.Message, config: ProxyConfig | None = None) -> int:
    with pytest.raises(CallRefused) as caught:
        taken(made, config)
    return caught.value.code


def test_a_plain_message_has_few_properties() -> None:
    sent = taken(message(b"x", tag="t", keys=["a", "b"]))
    assert decode(sent.properties) == {
        "TAGS": "t", "KEYS": "a b", "__BORNHOST": "laptop", "UNIQ_KEY": "01ABCD",
    }  # fmt: skip
    assert (sent.born_ms, sent.sys_flag, sent.type) == (1_000_000_000, 0, pb.NORMAL)
    header = sent.header(3, "broker-a")
    assert (header.topic, header.queue_id, header.bname) == ("orders", 3, "broker-a")


def test_a_message_without_a_host_was_born_where_it_comes_from() -> None:
    made = message()
    made.system_properties.born_host = ""
    assert decode(taken(made).properties)["__BORNHOST"] == "10.0.0.9:5"


@pytest.mark.parametrize(
    ("system", "kind", "properties"),
    [
        ({"message_group": "g"}, pb.FIFO, {"__SHARDINGKEY": "g"}),
        ({"delivery_timestamp": timestamp(NOW + 5)}, pb.DELAY, {"TIMER_DELIVER_MS": str(NOW + 5)}),
        ({"priority": 3}, pb.PRIORITY, {"_SYS_MSG_PRIORITY_": "3"}),
        (
            {
                "message_type": pb.TRANSACTION,
                "orphaned_transaction_recovery_duration": duration(9000),
            },
            pb.TRANSACTION,
            {"TRAN_MSG": "true", "PGROUP": "orders", "CHECK_IMMUNITY_TIME_IN_SECONDS": "9"},
        ),
        ({"trace_context": "00-1"}, pb.NORMAL, {"TRACE_CONTEXT": "00-1"}),
    ],
)
def test_what_a_message_asks_for_is_a_property(
    system: dict[str, Any], kind: int, properties: dict[str, str]
) -> None:
    sent = taken(message(**system))
    assert sent.type == kind
    found = decode(sent.properties)
    assert {name: found.get(name) for name in properties} == properties


def test_a_compressed_body_and_a_half_message_are_marked() -> None:
    assert taken(message(body_encoding=pb.GZIP)).sys_flag == 1
    assert taken(message(message_type=pb.TRANSACTION)).sys_flag == 4


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (message(b""), 41302),
        (message(b"x" * ((4 << 20) + 1)), 41301),
        (message(topic="a b"), 40002),
        (message(message_id=" "), 40009),
        (message(message_id="a\2b"), 40009),
        (message(tag="a|b"), 40004),
        (message(tag=" "), 40004),
        (message(keys=["a", " "]), 40005),
        (message(keys=["a\1"]), 40005),
        (message(message_group=" "), 40006),
        (message(message_group="g" * 64), 40006),
        (message(message_group="g\n"), 40006),
        (message(delivery_timestamp=timestamp(NOW + 86_400_001)), 40012),
        (
            message(
                message_type=pb.TRANSACTION,
                orphaned_transaction_recovery_duration=duration(3_601_000),
            ),
            40000,
        ),
        (message(priority=-1), 40000),
        (message(born_host="a\2TAGS\1b"), 40000),
        (message(trace_context="\1"), 40000),
        (message(keys=["k" * 16_385]), 43101),
    ],
)
def test_what_is_refused(made: pb.Message, code: int) -> None:
    assert refusal(made) == code


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"TAGS": "x"}, 40007),
        ({"_SYS_MSG_PRIORITY_": "1"}, 40007),
        ({"a\1": "x"}, 40007),
        ({"a": "x\2"}, 40007),
        ({f"p{n}": "x" for n in range(129)}, 43101),
        ({"a": "é" * 8_192}, 43101),
    ],
)
def test_which_properties_are_refused(properties: dict[str, str], code: int) -> None:
    made = message()
    made.user_properties.update(properties)
    assert refusal(made) == code


def test_bounds_of_no_size_are_none() -> None:
    config = ProxyConfig(
        delay_ms_max=0, transaction_check_seconds_max=0, message_group_bytes_max=0,
        check_empty_body=False,
    )  # fmt: skip
    taken(message(b"", message_group="g" * 100), config)
    taken(message(delivery_timestamp=timestamp(NOW * 2)), config)


TEXT = st.text(min_size=1, max_size=20).filter(
    lambda text: not has_control(text) and not any("\ud800" <= each <= "\udfff" for each in text)
)


@given(st.dictionaries(TEXT.filter(lambda name: name not in RESERVED), TEXT, max_size=5))
def test_properties_of_users_arrive(properties: dict[str, str]) -> None:
    made = message(tag="t")
    made.user_properties.update(properties)
    found = decode(taken(made).properties)
    assert {name: found[name] for name in properties} == properties
    assert found["TAGS"] == "t"
    assert found["UNIQ_KEY"] == "01ABCD"


@pytest.mark.parametrize(
    ("attribute", "fits"),
    [
        ("NORMAL", {pb.NORMAL}),
        ("FIFO", {pb.FIFO}),
        ("MIXED", {pb.NORMAL, pb.FIFO, pb.DELAY, pb.TRANSACTION}),
        ("UNSPECIFIED", set()),
        ("NEWER", set()),
    ],
)
def test_a_topic_takes_messages_of_its_type(attribute: str, fits: set[pb.MessageType]) -> None:
    for kind in (pb.NORMAL, pb.FIFO, pb.DELAY, pb.TRANSACTION, pb.PRIORITY, pb.LITE):
        if kind in fits:
            check_type(kind, attribute)
        else:
            with pytest.raises(CallRefused) as caught:
                check_type(kind, attribute)
            assert caught.value.code == pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE


def test_the_types_of_a_topic_are_told() -> None:
    assert types_of_topic("MIXED") == (1, 2, 3, 4)
    assert types_of_topic("NEWER") == (0,)


def test_messages_of_a_batch_keep_their_own() -> None:
    messages = [taken(message(b"%d" % at, message_id=f"ID{at}"), in_batch=True) for at in range(3)]
    header, body = batch_of(messages, 2, "broker-a")
    assert (header.queue_id, header.batch) == (2, True)
    parts = decode_batch(body)
    assert [bytes(each.body) for each in parts] == [b"0", b"1", b"2"]
    assert [decode(each.properties)["UNIQ_KEY"] for each in parts] == ["ID0", "ID1", "ID2"]
    assert decode(parts[0].properties)["BORN_TIMESTAMP"] == "1000000000"


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (message(topic="other"), 40016),
        (message(delivery_timestamp=timestamp(NOW + 5)), 40000),
        (message(message_group="g"), 40000),
        (message(body_encoding=pb.GZIP), 40000),
    ],
)
def test_what_cannot_go_together_is_refused(other: pb.Message, code: int) -> None:
    with pytest.raises(CallRefused) as caught:
        batch_of([taken(message()), taken(other)], 0, "broker-a")
    assert caught.value.code == code
