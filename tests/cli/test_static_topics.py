"""`sprocket statictopic`."""

from __future__ import annotations

import json

from tests.cli.parts import Outcome, sprocket


def static(node: str, *arguments: str) -> Outcome:
    return sprocket("statictopic", *arguments, "--nameserver", node)


def test_a_static_topic_is_created_shown_moved_and_used(node: str) -> None:
    made = static(node, "create", "fixed", "--queues", "2")
    assert (made.code, made.lines) == (
        0,
        ["0: broker-a (from 0 in broker-a:0)", "1: broker-a (from 0 in broker-a:1)"],
    )
    assert static(node, "move", "fixed", "--broker", "broker-a").lines == made.lines
    assert static(node, "finish", "fixed").lines == made.lines
    shown = [json.loads(line) for line in static(node, "show", "fixed", "--json").lines]
    assert shown[1] == {"queue": 1, "leader": "broker-a", "parts": [[0, "broker-a", 1]]}
    assert sprocket("send", "fixed", "x", "--nameserver", node).code == 0


def test_what_cannot_be_is_refused(node: str) -> None:
    assert static(node, "move", "nothing", "--broker", "broker-a").code == 1
    assert static(node, "create", "wrong", "--queues", "1", "--broker", "nobody").code == 2
    assert static(node, "move", "fixed").code == 2
