"""`sprocket group create`, `update`, `show`, `delete`."""

from __future__ import annotations

import json

from tests.cli.parts import Outcome, sprocket


def group(node: str, *arguments: str) -> Outcome:
    return sprocket("group", *arguments, "--nameserver", node)


def test_what_is_not_named_of_a_group_stays(node: str) -> None:
    given = ("--retries", "5", "--ordered", "--retry-queues", "3", "--no-broadcast")
    assert group(node, "create", "kept", *given).out == "kept: created on broker-a\n"
    assert group(node, "update", "kept", "--disabled").out == "kept: changed on broker-a\n"
    assert group(node, "create", "kept").out == "kept: unchanged on broker-a\n"
    (shown,) = map(json.loads, group(node, "show", "kept", "--json").lines)
    assert (shown["retryMaxTimes"], shown["retryQueueNums"]) == (5, 3)
    assert shown["consumeMessageOrderly"] is True
    assert shown["consumeEnable"] is shown["consumeBroadcastEnable"] is False


def test_an_update_needs_a_group_and_something_to_change(node: str) -> None:
    group(node, "create", "plain")
    assert group(node, "update", "plain").code == 2
    missing = group(node, "update", "absent", "--retries", "1")
    assert (missing.code, missing.out) == (1, "")
    assert "create it first" in missing.err


def test_a_group_is_deleted_at_one_broker(node: str) -> None:
    group(node, "create", "there")
    assert group(node, "delete", "there", "--broker", "broker-b", "--yes").code == 2
    assert group(node, "delete", "there", "--broker", "broker-a", "--yes").code == 0
    assert group(node, "show", "there").code == 1
