"""Which rights each request needs."""

from __future__ import annotations

import msgspec
import pytest

from sprocket.auth.needs import RULES, needs_of
from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.bodies import (
    AckBatchBody,
    AckItem,
    ConsumerData,
    GroupConfig,
    HeartbeatBody,
    LockBody,
    Queue,
    SubscriptionData,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.offset import QueryOffset
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendMessage, SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from tests.broker.parts import pull_of


def needs(header: Header | int, body: bytes = b"", **fields: str) -> list[str]:
    if isinstance(header, int):
        command = Command(header, source=fields, body=body)
    else:
        command = Command.request(header, body=body)
    found = needs_of(command, "C")
    assert found is not None
    return [f"{need.resource} {'|'.join(need.actions)}" for need in found]


def send(topic: str) -> SendMessageV2:
    return SendMessageV2(producer_group="p", topic=topic, queue_id=0, born_timestamp=1)


def test_a_sender_needs_pub_and_one_that_sends_back_sub_on_its_group() -> None:
    assert needs(send("orders")) == ["Topic:orders Pub"]
    assert needs(send("%RETRY%g")) == ["Group:g Sub"]
    old = SendMessage(producer_group="p", topic="orders", queue_id=0, born_timestamp=1)
    assert needs(old) == ["Topic:orders Pub"]
    assert needs(send("%DLQ%g")) == ["Topic:%DLQ%g Pub"]


def test_a_reader_needs_sub_on_topic_and_group() -> None:
    assert needs(pull_of("orders")) == ["Topic:orders Sub", f"Group:{group_in(pull_of('x'))} Sub"]


def group_in(header: PullMessage) -> str:
    return header.consumer_group


def test_a_groups_own_retry_topic_needs_the_group_only_and_anothers_that_group() -> None:
    own = {"topic": "%RETRY%g", "consumerGroup": "g"}
    assert needs(RequestCode.PULL_MESSAGE, **own) == ["Group:g Sub"]
    popped = {"topic": "%RETRY%g+orders", "consumerGroup": "g"}
    assert needs(RequestCode.PULL_MESSAGE, **popped) == ["Group:g Sub"]
    for topic in ("%RETRY%g_b", "%RETRY%other", "%RETRY%g_b+orders"):
        other = {"topic": topic, "consumerGroup": "g"}
        owner = topic.removeprefix("%RETRY%").partition("+")[0]
        assert needs(RequestCode.PULL_MESSAGE, **other) == [f"Group:{owner} Sub", "Group:g Sub"]


def test_a_handle_of_a_retry_topic_in_the_older_form_needs_the_group_only() -> None:
    fields = {"topic": "%RETRY%g_orders", "consumerGroup": "g"}
    assert needs(RequestCode.ACK_MESSAGE, **fields) == ["Group:g Sub"]
    assert needs(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, **fields) == ["Group:g Sub"]
    fields["topic"] = "orders"
    assert needs(RequestCode.ACK_MESSAGE, **fields) == ["Group:g Sub", "Topic:orders Sub"]


def test_acknowledgements_in_one_body_need_each_group_and_topic() -> None:
    body = AckBatchBody(
        acks=[AckItem(consumer_group="g", topic="a"), AckItem(consumer_group="h", topic="b")]
    )
    assert needs(RequestCode.BATCH_ACK_MESSAGE, body.encode()) == [
        "Group:g Sub", "Topic:a Sub", "Group:h Sub", "Topic:b Sub",
    ]  # fmt: skip


def test_a_heartbeat_needs_what_its_consumers_read() -> None:
    read = [SubscriptionData(topic="a"), SubscriptionData(topic="%RETRY%g")]
    body = HeartbeatBody(
        client_id="c", consumers=[ConsumerData(group_name="g", subscriptions=read)]
    )
    assert needs(Heartbeat(), body.encode()) == ["Group:g Sub", "Topic:a Sub"]
    assert needs(Heartbeat(), HeartbeatBody(client_id="c").encode()) == []


def test_locks_need_the_group_and_each_topic_once() -> None:
    queues = [Queue(topic="a", broker_name="b", queue_id=number) for number in range(3)]
    body = LockBody(consumer_group="g", client_id="c", mq_set=queues)
    assert needs(RequestCode.LOCK_BATCH_MQ, body.encode()) == ["Group:g Sub", "Topic:a Sub"]


def test_operators_need_the_right_to_what_they_change() -> None:
    assert needs(
        CreateTopic(
            topic="a", default_topic="x", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG",
        )
    ) == ["Topic:a Create"]  # fmt: skip
    group = GroupConfig(group_name="g").encode()
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    assert needs(code, group) == ["Group:g Create"]
    assert needs(QueryOffset(consumer_group="g", topic="a", queue_id=0)) == [
        "Topic:a Sub|Get", "Group:g Sub|Get",
    ]  # fmt: skip
    assert needs(RequestCode.UPDATE_BROKER_CONFIG) == ["Cluster:C Update"]


def test_what_a_request_leaves_out_is_needed_as_an_empty_name() -> None:
    assert needs(RequestCode.PULL_MESSAGE) == ["Topic: Sub", "Group: Sub"]
    assert needs(RequestCode.UNREGISTER_CLIENT) == []


def test_a_field_without_a_name_means_nothing() -> None:
    fields = {"topic": "%RETRY%other", "": "other"}
    assert needs(RequestCode.GET_MAX_OFFSET, **fields) == ["Group:other Sub|Get"]


def test_a_code_without_a_rule_is_nobodys() -> None:
    assert needs_of(Command(99_999), "C") is None


@pytest.mark.parametrize("body", [b"", b"[", b"5"])
def test_a_body_that_says_nothing_is_an_error(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        needs(RequestCode.HEART_BEAT, body)


def _all_headers(kind: type[Header]) -> list[type[Header]]:
    return [each for sub in kind.__subclasses__() for each in (sub, *_all_headers(sub))]


@pytest.mark.parametrize("code", RULES)
def test_each_rule_reads_the_fields_that_its_request_has(code: int) -> None:
    read: set[str] = set()

    class Watched(dict[str, str]):
        def get(self, name: str, default: object = None) -> str:  # type: ignore[override]
            read.add(name)
            return "x"

    kinds = [each for each in _all_headers(Header) if getattr(each, "code", None) == code]
    try:
        list(RULES[code].of(Command(code, source=Watched()), "C"))
    except RemoteProtocolError:
        return  # a rule that reads the body
    for kind in kinds:
        known = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert read <= known, (kind, read - known)
