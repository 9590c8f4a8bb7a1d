"""`sprocket acl`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.closed import Command

ANN = {"SPROCKET_CLIENT_ACCESS_KEY": "ann2", "SPROCKET_CLIENT_SECRET_KEY": "secret"}


@pytest.fixture
def ann(closed: Command) -> Iterator[Command]:
    closed("user", "create", "ann2", SPROCKET_USER_PASSWORD="secret")
    yield closed
    closed("user", "delete", "ann2", "--yes")


def test_rights_are_granted_shown_and_revoked(ann: Command) -> None:
    done = ann("acl", "grant", "ann2", "Topic:orders", "pub")
    assert done.out == "ann2: Allow Pub on Topic:orders on broker-a\n", done.err
    done = ann("acl", "grant", "ann2", "topic:orders", "Sub")
    assert done.out == "ann2: Allow Pub,Sub on Topic:orders on broker-a\n"
    ann("acl", "grant", "ann2", "Group:*", "Sub|Get", "--default", "--from", "10.0.0.0/8")
    shown = [json.loads(line) for line in ann("acl", "show", "ann2", "--json").lines]
    assert shown[1] == {
        "user": "ann2", "decision": "Allow", "actions": ["Get", "Sub"], "resource": "Group:*",
        "from": ["10.0.0.0/8"], "policy": "Default", "broker": "broker-a",
    }  # fmt: skip
    table = [line.split() for line in ann("acl", "list").lines]
    assert ["ann2", "Allow", "Pub,Sub", "Topic:orders", "-", "Custom", "broker-a"] in table
    left = ann("acl", "revoke", "ann2", "Topic:orders", "Pub", "--yes")
    assert left.out == "ann2: Allow Sub on Topic:orders on broker-a\n"
    assert ann("acl", "revoke", "ann2", "Topic:orders", "--yes").out == "ann2: taken on broker-a\n"
    missing = ann("acl", "revoke", "ann2", "Topic:orders", "--yes")
    assert (missing.code, missing.out) == (1, "")
    assert "sprocket acl show ann2" in missing.err
    assert ann("acl", "revoke", "ann2", "--all", "--yes").code == 0
    assert ann("acl", "show", "ann2", "--json").out == ""


def test_a_verdict_is_the_broker_s(ann: Command) -> None:
    def send() -> int:
        return ann("send", "ann-orders", "x", **ANN).code

    ann("topic", "create", "ann-orders")
    outcome = ann("acl", "test", "ann2", "Pub", "Topic:ann-orders")
    assert (outcome.code, send()) == (1, 1)
    assert outcome.out == "broker-a: refused: no entry of a policy is about this\n"
    ann("acl", "grant", "ann2", "Topic:ann-*", "Pub")
    ann("acl", "grant", "ann2", "*", "All", "--deny")
    outcome = ann("acl", "test", "ann2", "Pub", "Topic:ann-orders", "--from", "127.0.0.1")
    assert (outcome.code, send()) == (0, 0)
    assert outcome.lines == [
        "broker-a: allowed: its policy says Allow Pub on Topic:ann-*",
        "  does not count beside it: Deny All on *",
    ]
    ann("acl", "grant", "ann2", "Topic:ann-orders", "Pub", "--deny", "--from", "127.0.0.1")
    outcome = ann("acl", "test", "ann2", "Pub", "Topic:ann-orders", "--json")
    (found,) = map(json.loads, outcome.lines)
    assert found["allowed"] is True
    assert [each["resource"] for each in found["elsewhere"]] == ["Topic:ann-orders"]
    outcome = ann("acl", "test", "ann2", "Pub", "Topic:ann-orders", "--from", "127.0.0.1")
    assert (outcome.code, send()) == (1, 1)


def test_errors_say_what_to_change(ann: Command) -> None:
    ann("acl", "grant", "ann2", "Topic:orders", "Pub")
    other = ann("acl", "grant", "ann2", "Topic:orders", "Pub", "--deny")
    assert (other.code, "--replace" in other.err) == (2, True)
    for arguments, told in (
        (("grant", "ann2", "Topic:orders", "Write"), "Pub"),
        (("grant", "ann2", "Queue:orders", "Pub"), "Topic:NAME"),
        (("grant", "ann2", "Topic:orders", "Pub", "--from", "10.0.0.0/99"), "network"),
        (("revoke", "ann2"), "--all"),
        (("revoke", "ann2", "Topic:orders", "--all"), "--all"),
        (("test", "ann2", "Pub", "Topic:*"), "one resource"),
        (("test", "ann2", "Pub", "Topic:orders", "--from", "here"), "--from"),
    ):
        outcome = ann("acl", *arguments)
        assert (outcome.code, outcome.out) == (2, ""), arguments
        assert told in outcome.err
    assert ann("acl", "show", "nobody").code == 1
