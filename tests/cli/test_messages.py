"""`sprocket message`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sprocket.client import blocking
from sprocket.client.base.subscription import Later
from sprocket.message.message import StoredMessage
from tests.cli.parts import Outcome, eventually, sprocket
from tests.cli.test_groups import consuming


def message(node: str, *arguments: str) -> Outcome:
    return sprocket("message", *arguments, "--nameserver", node)


@pytest.fixture(scope="module")
def sent(node: str) -> dict[str, Any]:
    """A message in topic `sold`, as send told of it."""
    sprocket("topic", "create", "sold", "--queues", "1", "--nameserver", node)
    outcome = sprocket(
        "send", "sold", "coffee", "--tag", "new", "--key", "o-1", "--property", "shop=7", "--json",
        "--nameserver", node,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(outcome.out)
    return told


def test_a_message_is_found_by_key_and_shown_by_its_ids(node: str, sent: dict[str, Any]) -> None:
    (found,) = map(json.loads, message(node, "find", "sold", "o-1", "--json").lines)
    assert (found["body"], found["offset_id"]) == ("coffee", sent["offset_id"])
    assert sent["offset_id"] in message(node, "find", "sold", "o-1", "--since", "1h").out
    assert message(node, "find", "sold", "o-1", "--until", "1h", "--json").out == ""
    (by_place,) = map(json.loads, message(node, "show", sent["offset_id"], "--json").lines)
    assert by_place == found
    shown = message(node, "show", sent["message_id"], "--topic", "sold").out
    assert "coffee" in shown
    assert "shop" in shown
    missing = message(node, "show", "F" * 32, "--topic", "sold")
    assert missing.code == 1
    assert "no message FFF" in missing.err
    assert message(node, "show", "nonsense").code == 2


def test_a_message_is_found_by_the_time_when_it_was_stored(node: str, sent: dict[str, Any]) -> None:
    found = [
        json.loads(line) for line in message(node, "find", "sold", "--since", "1h", "--json").lines
    ]
    assert found[0]["offset_id"] == sent["offset_id"]
    assert message(node, "find", "sold", "--until", "1h", "--json").out == ""
    assert message(node, "find", "sold").code == 2
    assert message(node, "find", "sold", "o-1", "--id", "x").code == 2


def test_a_unique_id_finds_what_groups_gave_back_and_gave_up(node: str) -> None:
    sprocket("topic", "create", "returned", "--queues", "1", "--nameserver", node)
    told = json.loads(sprocket("send", "returned", "tea", "--json", "--nameserver", node).out)

    def refuse(message: StoredMessage) -> Later:
        return Later(1 if message.reconsume_times == 0 else -1)

    def places() -> set[str]:
        outcome = message(node, "find", "returned", "--id", told["message_id"], "--json")
        return {json.loads(line)["topic"] for line in outcome.lines}

    consumer = blocking.PushConsumer("givers", nameservers=node, start="first")
    consumer.subscribe("returned", listener=refuse)
    with consumer:
        eventually(lambda: places() == {"returned", "%RETRY%givers", "%DLQ%givers"})


def test_a_message_is_sent_again_with_what_its_sender_set(node: str, sent: dict[str, Any]) -> None:
    assert message(node, "resend", sent["offset_id"]).code == 1
    again = json.loads(message(node, "resend", sent["offset_id"], "--yes", "--json").out)
    assert (again["topic"], again["queue_offset"]) == ("sold", 1)
    (shown,) = map(json.loads, message(node, "show", again["offset_id"], "--json").lines)
    assert (shown["body"], shown["tag"], shown["keys"]) == ("coffee", "new", ["o-1"])
    assert shown["properties"]["shop"] == "7"
    assert shown["message_id"] not in (None, sent["message_id"])


def test_a_message_is_consumed_directly(node: str, sent: dict[str, Any]) -> None:
    place = sent["offset_id"]
    assert message(node, "consume-directly", "directly", place, "--yes").code == 1
    with consuming(node, "directly", "sold") as seen:
        eventually(lambda: len(seen) >= 1)
        before = len(seen)
        outcome = message(node, "consume-directly", "directly", place, "--yes", "--json")
        assert json.loads(outcome.out)["result"] == "CR_SUCCESS"
        eventually(lambda: len(seen) > before)
