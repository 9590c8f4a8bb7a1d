"""`sprocket send --delay`, `sprocket message waiting` and `recall`."""

from __future__ import annotations

import json

from tests.cli.parts import sprocket


def test_messages_that_wait_are_seen_and_taken_back(node: str) -> None:
    asked = ("--nameserver", node)
    # What is popped waits in the timers, too: other tests leave some.
    before = json.loads(sprocket("message", "waiting", "--json", *asked).out)["spans"]
    sent = json.loads(sprocket("send", "later", "tea", "--delay", "900", "--json", *asked).out)
    far = sprocket("send", "later", "cake", "--deliver-at", "2130-01-01T00:00:00+0100", *asked)
    assert (far.code, "max delay" in far.err) == (1, True)
    told = sprocket("send", "later", "milk", "--delay", "50", *asked).out
    assert "sprocket message recall djE" in told
    waiting = json.loads(sprocket("message", "waiting", "--json", *asked).out)
    assert waiting["topics"]["later"] == 2
    more = [waiting["spans"][each] - before.get(each, 0) for each in ("900", "60")]
    assert more == [1, 1]
    shown = sprocket("message", "waiting", *asked).out
    assert "due within" in shown
    assert "15 min" in shown
    recalled = sprocket("message", "recall", sent["recall_handle"], "--json", *asked)
    assert json.loads(recalled.out) == {"message_id": sent["message_id"]}
    assert sprocket("message", "recall", sent["recall_handle"], *asked).code == 0


def test_what_is_no_handle_is_said(node: str) -> None:
    outcome = sprocket("message", "recall", "nonsense", "--nameserver", node)
    assert (outcome.code, "handle is invalid" in outcome.err) == (2, True)


def test_delays_exclude_each_other(node: str) -> None:
    outcome = sprocket(
        "send", "later", "x", "--delay", "1", "--delay-level", "2", "--nameserver", node
    )
    assert (outcome.code, "exclude each other" in outcome.err) == (2, True)
