"""`sprocket deadletters`."""

from __future__ import annotations

import json

import pytest

from sprocket import Later
from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import StoredMessage
from tests.cli.parts import Outcome, eventually, sprocket

#: One listener call at a time, so that messages of one queue are seen in their order.
IN_ORDER = ConsumerConfig(concurrency=1)


def letters(node: str, *arguments: str) -> Outcome:
    return sprocket("deadletters", *arguments, "--nameserver", node)


class Giver:
    """A consumer that gives everything up until it is told not to."""

    def __init__(self) -> None:
        self.seen: list[StoredMessage] = []
        self.gives_up = True

    def listen(self, message: StoredMessage) -> Later | None:
        self.seen.append(message)
        return Later(-1) if self.gives_up else None


@pytest.fixture(scope="module")
def group(node: str) -> str:
    """A group with two dead letters."""
    sprocket("topic", "create", "lost", "--queues", "1", "--nameserver", node)
    for body in "ab":
        sprocket("send", "lost", body, "--property", "shop=7", "--nameserver", node)
    giver = Giver()
    consumer = blocking.PushConsumer("loser", nameservers=node, start="first", config=IN_ORDER)
    consumer.subscribe("lost", listener=giver.listen)
    with consumer:
        eventually(lambda: len(letters(node, "list", "loser", "--json").lines) == 2)
    return "loser"


def test_dead_letters_are_listed(node: str, group: str) -> None:
    first, second = map(json.loads, letters(node, "list", group, "--json").lines)
    assert (first["body"], second["body"]) == ("a", "b")
    assert first["properties"]["shop"] == "7"
    heading, row, _ = letters(node, "list", group).lines
    assert heading.split()[:3] == ["offset", "id", "topic"]
    assert row.split()[:2] == [first["offset_id"], "lost"]
    assert len(letters(node, "list", group, "--count", "1").lines) == 2
    assert letters(node, "list", group, "--until", "1h", "--json").out == ""
    sprocket("group", "create", "careful", "--nameserver", node)
    assert letters(node, "list", "careful", "--json") == Outcome(0, "", "")


def test_dead_letters_go_back_to_their_group(node: str, group: str) -> None:
    giver = Giver()
    giver.gives_up = False
    consumer = blocking.PushConsumer(group, nameservers=node, start="first", config=IN_ORDER)
    consumer.subscribe("lost", listener=giver.listen)
    with consumer:
        assert letters(node, "resend", group, "--all").code == 1
        ids = [
            json.loads(line)["offset_id"] for line in letters(node, "list", group, "--json").lines
        ]
        assert letters(node, "resend", group, ids[0], "--yes").out == (
            f"1 dead letters sent to consumer group {group}\n"
        )
        eventually(lambda: len(giver.seen) == 1)
        sent = letters(node, "resend", group, "--all", "--since", "1h", "--yes", "--json")
        assert {json.loads(line)["topic"] for line in sent.lines} == {f"%RETRY%{group}"}
        eventually(lambda: len(giver.seen) == 3)
    assert [each.body for each in giver.seen] == [b"a", b"a", b"b"]
    assert giver.seen[0].topic == "lost"
    assert giver.seen[0].properties["shop"] == "7"


def test_dead_letters_go_back_to_their_topics(node: str, group: str) -> None:
    sent = letters(node, "resend", group, "--all", "--to-topic", "--yes", "--json")
    assert [json.loads(line)["topic"] for line in sent.lines] == ["lost", "lost"]


def test_what_is_no_dead_letter_is_refused(node: str, group: str) -> None:
    sold = json.loads(sprocket("send", "lost", "c", "--json", "--nameserver", node).out)
    outcome = letters(node, "resend", group, sold["offset_id"], "--yes")
    assert outcome.code == 2
    assert "no dead letter" in outcome.err
    assert letters(node, "resend", group, "--yes").code == 2
    sprocket("group", "create", "careful", "--nameserver", node)
    assert letters(node, "resend", "careful", "--all", "--yes").out.startswith("0 dead letters")
