"""`sprocket topic`."""

from __future__ import annotations

import json

import pytest

from tests.cli.parts import Outcome, sprocket


def topic(node: str, *arguments: str) -> Outcome:
    return sprocket("topic", *arguments, "--nameserver", node)


def test_a_topic_is_created_listed_shown_and_deleted(node: str) -> None:
    made = topic(node, "create", "made", "--queues", "2")
    assert (made.code, made.out) == (0, "made: created on broker-a: 2 queues, RW-\n")
    assert "made" in topic(node, "list").lines
    assert "TBW102" not in topic(node, "list").lines
    assert {"topic": "TBW102"} in map(json.loads, topic(node, "list", "--all", "--json").lines)
    (shown,) = map(json.loads, topic(node, "route", "made", "--json").lines)
    assert (shown["broker"], shown["read_queues"], shown["permission"]) == ("broker-a", 2, 6)
    assert " RW-" in topic(node, "route", "made").lines[1]
    assert topic(node, "delete", "made", "--yes").code == 0
    gone = topic(node, "route", "made")
    assert gone.code == 1
    assert gone.err.startswith("sprocket: No topic route info in name server for the topic: made")


def test_the_status_shows_each_queue(node: str) -> None:
    topic(node, "create", "full", "--queues", "1")
    for _ in range(2):
        sprocket("send", "full", "x", "--nameserver", node)
    (queue,) = map(json.loads, topic(node, "status", "full", "--json").lines)
    assert (queue["min_offset"], queue["max_offset"]) == (0, 2)
    heading, row = topic(node, "status", "full").lines
    assert heading.split()[:2] == ["broker", "queue"]
    assert row.split()[:5] == ["broker-a", "0", "0", "2", "2"]


def test_the_volume_of_a_topic_is_shown(node: str) -> None:
    topic(node, "create", "loud", "--queues", "1")
    sprocket("send", "loud", "x", "--nameserver", node)
    (came,) = map(json.loads, topic(node, "volume", "loud", "--json").lines)
    assert (came["group"], came["minute"], came["day"]) == (None, 1, 1)
    assert topic(node, "volume", "loud").lines[1].split() == ["(sent)", "1", "1", "1", "0.1"]


def test_deleting_asks_first(node: str) -> None:
    topic(node, "create", "kept")
    assert topic(node, "delete", "kept").code == 1
    assert "kept" in topic(node, "list").lines


@pytest.mark.parametrize("permission", ["x", "", "rr"])
def test_a_wrong_permission_is_refused(node: str, permission: str) -> None:
    outcome = topic(node, "create", "never", "--permission", permission)
    assert outcome.code == 2
    assert "r, w or rw" in outcome.err


def test_what_is_not_named_stays_and_what_hides_messages_is_refused(node: str) -> None:
    topic(node, "create", "wide", "--read-queues", "4", "--write-queues", "3")
    made = topic(node, "create", "wide", "--permission", "r")
    assert made.out == "wide: changed on broker-a: 4 read and 3 write queues, R--\n"
    assert topic(node, "create", "wide").out.startswith("wide: unchanged on broker-a")
    topic(node, "update", "wide", "--permission", "rw", "--queues", "1")
    sprocket("send", "wide", "x", "--nameserver", node)
    refused = topic(node, "update", "wide", "--read-queues", "0", "--write-queues", "0")
    assert refused.code == 2
    assert "queues 0 hold 1 messages" in refused.err
    assert "--force" in refused.err
    few = ("--read-queues", "0", "--write-queues", "0")
    assert topic(node, "update", "wide", *few, "--force").code == 0
    assert topic(node, "update", "wide").code == 2
    assert topic(node, "update", "wide", "--queues", "2", "--read-queues", "2").code == 2
    assert topic(node, "update", "absent", "--queues", "2").code == 1


def test_a_topic_is_deleted_at_one_broker(node: str) -> None:
    topic(node, "create", "there")
    assert topic(node, "delete", "there", "--broker", "broker-b", "--yes").code == 2
    assert topic(node, "delete", "there", "--broker", "broker-a", "--yes").code == 0
    assert topic(node, "status", "there").code == 1


def test_a_name_that_cannot_be_is_one_line(node: str) -> None:
    outcome = topic(node, "create", "a.b")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def test_the_settings_of_a_topic_are_shown_with_its_attributes(node: str) -> None:
    made = topic(
        node, "create", "typed", "-q", "2", "--message-type", "fifo", "-a", "reserve.time=7"
    )
    assert made.out == (
        "typed: created on broker-a: 2 queues, RW-, message.type=FIFO, reserve.time=7\n"
    )
    changed = topic(
        node, "update", "typed", "--no-attribute", "message.type", "-a", "reserve.time=8"
    )
    assert changed.out == "typed: changed on broker-a: 2 queues, RW-, reserve.time=8\n"
    (shown,) = map(json.loads, topic(node, "show", "typed", "--json").lines)
    assert (shown["broker"], shown["attributes"]) == ("broker-a", {"reserve.time": "8"})
    assert topic(node, "show", "typed").lines[1].split() == (
        ["broker-a", "2", "2", "RW-", "NORMAL", "reserve.time=8"]
    )
    refused = topic(node, "update", "typed", "--attribute", "queue.type=BatchCQ")
    assert refused.code == 1
    assert "attempt to update an unchangeable attribute. key: queue.type" in refused.err
    assert topic(node, "show", "absent").code == 1
    assert topic(node, "delete", "typed", "--yes").code == 0
