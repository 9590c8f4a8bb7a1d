"""What is recorded of a request."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from sprocket.audit.entries import BODY_NAMES, AuditEntry, named_by, time_text
from sprocket.protocol.bodies.accounts import UserBody
from sprocket.protocol.bodies.group import RequestMode
from sprocket.protocol.bodies.topic import TopicConfig, TopicConfigList
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.account import CreateAcl, CreateUser
from sprocket.protocol.requests.filter import RemoveFilter
from sprocket.protocol.requests.group import SetRequestMode
from sprocket.protocol.requests.topic import CreateTopics, DeleteTopic
from sprocket.protocol.signing import Signer


def test_declared_fields_are_named_and_no_proof_of_who_somebody_is() -> None:
    header = RemoveFilter(
        consumer_group="g", topic="t", class_name="f", version="", signed_ms=5, signature="proof"
    )
    command = Command.request(header)
    command.source = Signer("me", "Hunter2", "token").signed(
        {**header.to_fields(), "secretKey": "s"}
    )
    named = named_by(command, BODY_NAMES)
    assert named["topic"] == "t"
    assert named["className"] == "f"
    assert not named.keys() & {"signature", "Signature", "AccessKey", "SecurityToken", "secretKey"}


def test_bodies_name_topics_groups_and_modes() -> None:
    topics = TopicConfigList([TopicConfig(topic_name="a"), TopicConfig(topic_name="b")])
    asked = Command.request(CreateTopics(), body=topics.encode())
    assert named_by(asked, BODY_NAMES) == {"topics": ["a", "b"]}
    mode = RequestMode(consumer_group="g", topic="t", mode="POP")
    named = named_by(Command.request(SetRequestMode(), body=mode.encode()), BODY_NAMES)
    assert (named["consumerGroup"], named["topic"], named["mode"]) == ("g", "t", "POP")


def test_a_user_is_named_without_the_password_and_policies_are_named_whole() -> None:
    body = UserBody(password="Hunter2", user_type="Super").encode()
    named = named_by(Command.request(CreateUser(username="u"), body=body), BODY_NAMES)
    assert named == {"username": "u", "userType": "Super", "setsPassword": True}
    policy = b'{"policies":[{"entries":[{"resource":"Topic:t","actions":["Pub"]}]}]}'
    named = named_by(Command.request(CreateAcl(subject="User:u"), body=policy), BODY_NAMES)
    assert named["subject"] == "User:u"
    assert named["policies"][0]["entries"][0]["resource"] == "Topic:t"


def test_what_cannot_be_read_or_is_too_long_makes_a_line_all_the_same() -> None:
    broken = Command(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=b"{")
    assert named_by(broken, BODY_NAMES) == {"unreadable": "body"}
    assert named_by(Command(RequestCode.DELETE_TOPIC_IN_BROKER), BODY_NAMES) == {
        "unreadable": "header"
    }
    long = TopicConfigList([TopicConfig(topic_name="x" * 300)] * 100)
    named = named_by(Command.request(CreateTopics(), body=long.encode()), BODY_NAMES)
    assert named.keys() == {"tooLong"}
    named = named_by(Command.request(DeleteTopic(topic="x" * 5_000)), BODY_NAMES)
    assert len(named["topic"]) < 500


@given(some.sampled_from(sorted(BODY_NAMES)), some.binary(max_size=80), some.text(max_size=20))
def test_no_request_breaks_a_line(code: int, body: bytes, topic: str) -> None:
    named = named_by(Command(code, body=body, source={"topic": topic + "\ud800\n"}), BODY_NAMES)
    line = AuditEntry("", "b", "", "", "", "", code, named, 0).encode()
    assert line.count(b"\n") == 1
    assert json.loads(line)["named"] == msgspec.to_builtins(named)


def test_times_are_of_one_form_so_that_they_sort_as_texts() -> None:
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(1_700_000_000_050) == "2023-11-14T22:13:20.050Z"
