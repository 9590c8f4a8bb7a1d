"""`sprocket group`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sprocket.client import blocking
from sprocket.message.message import Message, StoredMessage
from tests.cli.parts import Outcome, eventually, sprocket


def group(node: str, *arguments: str) -> Outcome:
    return sprocket("group", *arguments, "--nameserver", node)


@contextmanager
def consuming(node: str, name: str, topic: str, tags: str = "*") -> Iterator[list[bytes]]:
    """A member of a group; gives what it gets."""
    seen: list[bytes] = []

    def listen(message: StoredMessage) -> None:
        seen.append(message.body)

    consumer = blocking.PushConsumer(name, nameservers=node, start="first")
    consumer.subscribe(topic, tags=tags, listener=listen)
    with consumer:
        yield seen


@pytest.fixture(scope="module")
def topic(node: str) -> str:
    """A topic with three messages in one queue, consumed by group `cg`."""
    sprocket("topic", "create", "grouped", "--queues", "1", "--nameserver", node)
    for body in "abc":
        sprocket("send", "grouped", body, "--nameserver", node)
    with consuming(node, "cg", "grouped") as seen:
        eventually(lambda: len(seen) == 3)
    return "grouped"


def test_groups_are_listed_with_their_state_if_wanted(node: str, topic: str) -> None:
    assert "cg" in group(node, "list").lines
    assert {"group": "cg"} in map(json.loads, group(node, "list", "--json").lines)
    shown = {
        row["group"]: row
        for row in map(json.loads, group(node, "list", "--status", "--json").lines)
    }
    assert (shown["cg"]["members"], shown["cg"]["behind"]) == (0, 0)
    heading = group(node, "list", "--status").lines[0]
    assert heading.split() == ["group", "members", "kind", "model", "lag", "per", "second"]


def test_a_groups_settings_are_shown(node: str, topic: str) -> None:
    (shown,) = map(json.loads, group(node, "show", "cg", "--json").lines)
    assert (shown["broker"], shown["retryMaxTimes"]) == ("broker-a", 16)
    assert group(node, "show", "cg").lines[1].split() == [
        "broker-a", "yes", "yes", "no", "16", "1", "-",
    ]  # fmt: skip
    missing = group(node, "show", "nobody")
    assert missing.code == 1
    assert "no broker knows a consumer group nobody" in missing.err


def test_members_are_shown_and_where_their_code_is(node: str, topic: str) -> None:
    assert group(node, "members", "cg").code == 1
    with consuming(node, "cg", topic):
        (shown,) = map(json.loads, group(node, "members", "cg", "--json").lines)
        assert shown["subscriptions"] == {topic: "*", "%RETRY%cg": "*"}
        text = group(node, "members", "cg").out
        assert shown["client_id"] in text
        assert "push, clustering, CONSUME_FROM_FIRST_OFFSET" in text
        assert "task " in group(node, "members", "cg", "--stacks", shown["client_id"]).out
        eventually(
            lambda: any(
                row["owner"] == shown["client_id"]
                for row in map(json.loads, group(node, "lag", "cg", "--owners", "--json").lines)
            )
        )


def test_a_member_that_subscribes_otherwise_is_shown(node: str, topic: str) -> None:
    with consuming(node, "mixed", topic, "old"), consuming(node, "mixed", topic, "new"):

        def shown() -> list[dict[str, Any]]:
            return [json.loads(line) for line in group(node, "members", "mixed", "--json").lines]

        eventually(lambda: len(shown()) == 2)
        counts = shown()[0]["subscriptions"][topic]
        assert counts in ("old", "new")
        assert {each["own"][topic] for each in shown()} == {"old", "new"}
        (other,) = (each for each in shown() if each["own"][topic] != counts)
        lines = group(node, "members", "mixed").lines
        at = lines.index("Subscriptions that differ from the group's:")
        assert lines[at + 2].split() == [other["client_id"], topic, other["own"][topic]]


def test_a_group_is_made_and_changed(node: str) -> None:
    made = group(node, "create", "made", "--retries", "3", "--ordered")
    assert made.out == "made: created on broker-a\n"
    (shown,) = map(json.loads, group(node, "show", "made", "--json").lines)
    assert (shown["retryMaxTimes"], shown["consumeMessageOrderly"]) == (3, True)
    assert group(node, "create", "no group!").code == 2


def test_what_a_member_is_doing_is_shown(node: str, topic: str) -> None:
    with consuming(node, "busy", "grouped") as seen:
        eventually(lambda: len(seen) == 3)
        (member,) = map(json.loads, group(node, "members", "busy", "--json").lines)
        shown = group(node, "running", "busy", member["client_id"])
        assert any(line.split()[:3] == ["grouped", "broker-a", "0"] for line in shown.lines)
        assert any(line.split() == ["concurrency", "20"] for line in shown.lines)
        told = json.loads(group(node, "running", "busy", member["client_id"], "--json").out)
        assert told["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        (queue,) = [each for each in told["mqTable"] if each["topic"] == "grouped"]
        assert (queue["brokerName"], queue["queueId"], queue["locked"]) == ("broker-a", 0, True)
        assert group(node, "running", "busy", "nobody").code == 1


def test_producers_are_shown(node: str) -> None:
    with blocking.Producer("shop", nameservers=node) as producer:
        producer.send(Message("grouped-too", b"1"))
        (shown,) = map(json.loads, group(node, "producers", "shop", "--json").lines)
        assert (shown["language"], shown["brokers"]) == ("PYTHON", ["broker-a"])
        heading = group(node, "producers", "shop").lines[0].split()
        assert heading == ["client", "address", "language", "brokers"]
    assert group(node, "producers", "nobody").code == 1


def test_a_group_is_moved_and_copied_and_its_lag_is_shown(node: str, topic: str) -> None:
    def lag() -> int:
        lines = group(node, "lag", "cg", "--topic", topic, "--json").lines
        return sum(int(json.loads(line)["behind"]) for line in lines)

    assert lag() == 0
    refused = group(node, "reset", "cg", topic, "--to", "first")
    assert (refused.code, lag()) == (1, 0)
    moved = group(node, "reset", "cg", topic, "--to", "first", "--yes")
    assert moved.lines[1].split() == [topic, "broker-a", "0", "0"]
    assert lag() == 3
    group(node, "reset", "cg", topic, "--queue", "broker-a:0", "--offset", "1", "--yes")
    assert lag() == 2
    assert group(node, "lag", "cg").lines[-1].startswith("lag 2,")
    (copied,) = map(
        json.loads, group(node, "clone", "cg", "cg-2", "--topic", topic, "--yes", "--json").lines
    )
    assert copied["offset"] == 1
    with consuming(node, "cg", topic) as seen:
        eventually(lambda: len(seen) == 2)
    assert seen == [b"b", b"c"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--to", "first", "--offset", "1"),
        ("--to", "yesterday"),
        ("--to", ""),
        ("--offset", "1"),
        ("--queue", "nothing", "--offset", "1"),
    ],
)
def test_a_move_that_is_asked_wrongly_is_one_line(node: str, arguments: tuple[str, ...]) -> None:
    outcome = group(node, "reset", "cg", "grouped", "--yes", *arguments)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def test_a_group_is_deleted(node: str) -> None:
    sprocket("topic", "create", "short", "--queues", "1", "--nameserver", node)
    with consuming(node, "leaving", "short"):
        eventually(lambda: "leaving" in group(node, "list").lines)
    assert group(node, "delete", "leaving").code == 1
    assert group(node, "delete", "leaving", "--yes").out == "leaving: deleted on broker-a\n"
    assert "leaving" not in group(node, "list").lines


def test_a_groups_mode_is_set_and_shown(node: str, topic: str) -> None:
    assert group(node, "mode", topic, "cg").out == f"{topic} for cg: default on broker-a\n"
    assert group(node, "mode", topic, "cg", "pop").out == f"{topic} for cg: POP on broker-a\n"
    assert group(node, "mode", topic, "cg").out == f"{topic} for cg: POP on broker-a\n"
    assert group(node, "mode", topic, "cg", "PULL").code == 0
    assert group(node, "mode", "no-such-topic", "cg", "POP").code == 1
    assert group(node, "mode", topic, "cg", "PUSH").code == 2
