"""`sprocket config get` and `set`: settings of brokers that run."""

from __future__ import annotations

import json

from tests.cli.parts import Outcome, sprocket


def config(node: str, *arguments: str) -> Outcome:
    return sprocket("config", *arguments, "--nameserver", node)


def test_what_is_set_is_shown_and_what_cannot_be_is_refused(node: str) -> None:
    done = config(node, "set", "shortPollingTimeMills=1234", "--broker", "broker-a")
    assert (done.code, done.out) == (0, "broker-a: shortPollingTimeMills=1234\n")
    (shown,) = map(json.loads, config(node, "get", "shortPollingTimeMills", "--json").lines)
    assert shown == {"broker": "broker-a", "setting": "shortPollingTimeMills", "value": "1234"}
    refused = config(node, "set", "shortPollingTimeMills=1", "brokerName=other")
    assert refused.code == 1
    assert "brokerName cannot be changed while the broker runs" in refused.err
    assert config(node, "get", "shortPollingTimeMills").lines[1].split()[-1] == "1234"
    missing = config(node, "get", "shortPolingTimeMills")
    assert missing.code == 2
    assert "did you mean 'shortPollingTimeMills'" in missing.err
    assert config(node, "set", "shortPollingTimeMills").code == 2


def test_name_servers_are_asked_and_changed_themselves(node: str) -> None:
    def shown() -> str:
        (line,) = config(node, "get", "orderMessageEnable", "--of-nameservers", "--json").lines
        value: str = json.loads(line)["value"]
        return value

    before = shown()
    other = "false" if before == "true" else "true"
    for value in (other, before):
        done = config(node, "set", f"orderMessageEnable={value}", "--of-nameservers")
        assert (done.code, done.out) == (0, f"{node}: orderMessageEnable={value}\n")
        assert shown() == value
    refused = config(node, "set", "listenPort=1", "--of-nameservers")
    assert refused.code == 1
    assert "cannot change while it runs: port" in refused.err
    assert config(node, "get", "--of-nameservers", "--broker", "broker-a").code == 2


def test_each_name_that_is_shown_can_be_set(node: str) -> None:
    for line in config(node, "get", "--json").lines:
        shown = json.loads(line)
        done = config(node, "set", f"{shown['setting']}={shown['value']}")
        assert done.code == 0, (shown, done.err)


def test_quotas_are_set_and_what_they_refuse_is_shown(node: str) -> None:
    assert config(node, "quotas", "--json").lines == []
    done = config(node, "set", "broker.quotas=topic Limited requests=1/1; ip * held=100")
    assert done.code == 0, done.err
    try:
        for _ in range(3):
            sprocket("send", "Limited", "hello", "--nameserver", node)
        rows = [json.loads(line) for line in config(node, "quotas", "--json").lines]
    finally:
        assert config(node, "set", "broker.quotas=").code == 0
    assert {(row["what"], row["name"]) for row in rows} == {("refused", ""), ("over", "Limited")}
    assert all((row["kind"], row["limit"]) == ("topic", "requests") for row in rows)
    wrong = config(node, "set", "broker.quotas=topic Limited request=1")
    assert wrong.code == 1
    assert "limits of a topic are requests" in wrong.err
