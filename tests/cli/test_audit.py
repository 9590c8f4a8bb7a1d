"""`sprocket audit show`."""

from __future__ import annotations

import json
from pathlib import Path

from sprocket.audit.config import AuditConfig
from sprocket.broker.config import BrokerConfig
from tests.cli.parts import running_node, sprocket


def test_what_was_changed_is_shown_and_chosen(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running_node(str(store), AuditConfig(enabled=True)) as names:
        assert sprocket("topic", "create", "orders", "-n", names).code == 0
        assert sprocket("topic", "create", "other", "-n", names).code == 0
        assert sprocket("topic", "delete", "orders", "--yes", "-n", names).code == 0
    folder = store / "audit"
    assert (folder / "broker" / "audit.jsonl").stat().st_mode & 0o077 == 0

    every = sprocket("audit", "show", str(folder))
    assert every.code == 0
    assert "UPDATE_AND_CREATE_TOPIC" in every.out
    assert "DELETE_TOPIC_IN_NAMESRV" in every.out
    chosen = sprocket("audit", "show", str(folder), "--topic", "orders", "--json")
    found = [json.loads(line) for line in chosen.lines]
    assert [each["request"] for each in found] == [
        "UPDATE_AND_CREATE_TOPIC", "DELETE_TOPIC_IN_BROKER", "DELETE_TOPIC_IN_NAMESRV",
    ]  # fmt: skip
    by_settings = sprocket("audit", "show", "--topic", "other", SPROCKET_STORE_PATH=str(store))
    assert len(by_settings.lines) == 2
    assert len(sprocket("audit", "show", str(folder), "--failed").lines) == 1
    assert len(sprocket("audit", "show", str(folder), "--user", "nobody").lines) == 1
    assert len(sprocket("audit", "show", str(folder), "--until", "1h").lines) == 1
    assert len(sprocket("audit", "show", str(folder), "--since", "1h").lines) > 3


def test_a_message_that_is_sent_again_is_recorded_and_no_other(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running_node(str(store), AuditConfig(enabled=True)) as names:
        for body in ("one", "two"):
            sent = sprocket("send", "orders", body, "--key", body, "--json", "-n", names)
            assert sent.code == 0, sent.err
        found = sprocket("message", "find", "orders", "one", "--json", "-n", names)
        (line,) = found.lines
        again = ("message", "resend", json.loads(line)["message_id"], "--topic", "orders", "--yes")
        done = sprocket(*again, "-n", names)
        assert done.code == 0, done.err
    shown = sprocket("audit", "show", str(store / "audit"), "--json").lines
    sends = [each for each in map(json.loads, shown) if "SEND" in each["request"]]
    assert [each["named"]["topic"] for each in sends] == ["orders"]


def test_the_entries_of_a_topic_are_shown_in_the_same_way(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running_node(str(store), BrokerConfig(port=0, audit_topic="audit-log")) as names:
        assert sprocket("topic", "create", "orders", "-n", names).code == 0
        assert sprocket("topic", "create", "other", "-n", names).code == 0
        assert sprocket("topic", "delete", "orders", "--yes", "-n", names).code == 0
        read = ("audit", "show", "--from", "audit-log", "-n", names)
        chosen = sprocket(*read, "--topic", "orders", "--json")
        found = [json.loads(line)["request"] for line in chosen.lines]
        assert found == ["UPDATE_AND_CREATE_TOPIC", "DELETE_TOPIC_IN_BROKER"]
        assert len(sprocket(*read).lines) == 4
        assert len(sprocket(*read, "--until", "1h").lines) == 1
        assert sprocket(*read, str(store)).code == 2
        missing = sprocket("audit", "show", "--from", "no-such-topic", "-n", names)
        assert missing.code != 0
        assert "no-such-topic" in missing.err
    assert not (store / "audit").exists()


def test_where_there_is_none_that_is_said(tmp_path: Path) -> None:
    found = sprocket("audit", "show", str(tmp_path / "x"))
    assert (found.code, found.err) == (2, f"sprocket: there is no audit log at {tmp_path / 'x'}\n")
