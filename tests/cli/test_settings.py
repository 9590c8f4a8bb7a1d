"""`sprocket config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.parts import sprocket


def test_every_setting_is_shown_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[broker]\nname = "b-7"\n')
    outcome = sprocket(
        "config", "show", "--config", str(file), "--set", "store.flush=SYNC_FLUSH", "--json",
        SPROCKET_NAMESERVER_PORT="1234",
    )  # fmt: skip
    shown = {each["setting"]: each for each in map(json.loads, outcome.lines)}
    assert shown["broker.name"] == {
        "setting": "broker.name", "value": "b-7", "from": f"{file}:2",
    }  # fmt: skip
    assert shown["store.flush"]["from"] == "command line (store.flush)"
    assert shown["nameserver.port"]["value"] == 1234
    assert shown["nameserver.host"]["from"] == "default"


def test_a_setting_that_has_an_option_too_can_be_given_by_set(tmp_path: Path) -> None:
    for command in ("broker", "standalone"):
        outcome = sprocket(command, "--store", str(tmp_path), "--set", "broker.port=abc")
        assert outcome.code == 2
        assert "command line (broker.port): broker.port takes a whole number" in outcome.err


def test_name_servers_of_a_broker_that_are_no_addresses_are_told_at_once(tmp_path: Path) -> None:
    outcome = sprocket("broker", "--store", str(tmp_path), "--nameserver", "nonsense")
    assert outcome.code == 2
    assert "broker.nameservers is host:port, so perhaps 'nonsense:9876'" in outcome.err


def test_settings_are_shown_as_a_table_too() -> None:
    outcome = sprocket("config", "show")
    assert outcome.lines[0].split() == ["setting", "value", "from"]
    assert any(line.split() == ["broker.port", "10911", "default"] for line in outcome.lines)


def test_the_reference_has_a_row_for_each_setting() -> None:
    outcome = sprocket("config", "reference")
    assert "## [nameserver]" in outcome.lines
    (row,) = [line for line in outcome.lines if line.startswith("| `kv_path`")]
    assert "`kvConfigPath`" in row
    assert "`SPROCKET_NAMESERVER_KV_PATH`" in row
    facts = [json.loads(line) for line in sprocket("config", "reference", "--json").lines]
    assert len(facts) == sum(line.startswith("| `") for line in outcome.lines)
    assert "## [client]" in outcome.lines
    by_name = {each["setting"]: each for each in facts}
    assert by_name["client.heartbeat_ms"]["environment"] == "SPROCKET_CLIENT_HEARTBEAT_MS"
    assert by_name["consumer.concurrency"]["rocketmq"] == ["consumeThreadMin"]
    assert by_name["consumer.concurrency"]["environment"] is None
    assert "consumer.heartbeat_ms" not in by_name


def test_secrets_are_not_shown() -> None:
    outcome = sprocket(
        "config", "show", SPROCKET_CLIENT_ACCESS_KEY="me", SPROCKET_CLIENT_SECRET_KEY="hush"
    )
    assert "hush" not in outcome.out
    assert any(line.split()[:2] == ["client.access_key", "me"] for line in outcome.lines)
    assert any(line.split()[:2] == ["client.secret_key", "(secret)"] for line in outcome.lines)


def test_a_right_file_is_right(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b\nuseEpollNativeSelector=true\n")
    outcome = sprocket("config", "check", str(file))
    assert (outcome.code, outcome.out) == (0, f"{file}: valid for a broker\n")
    assert outcome.err == (
        f"sprocket: note: {file}: these settings have no effect here: useEpollNativeSelector "
        "(line 2), since asyncio and the operating system run the connections\n"
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"brokerNmae=b\n", "unknown setting 'brokerNmae'; did you mean 'brokerName'?"),
        (b"listenPort=70000\n", "listenPort (broker.port) is at most 65535, not 70000"),
        (b"listenPort=\xff\n", "is not UTF-8 (byte 0xFF)"),
        (b"#" * (1 << 21), "no configuration file"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "broker.conf"
    file.write_bytes(content)
    outcome = sprocket("config", "check", str(file))
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith(f"sprocket: {file}")
    assert complaint in outcome.err


def test_a_missing_file_and_a_wrong_set_are_one_line() -> None:
    outcome = sprocket("config", "check", "/no/such.conf")
    assert outcome.err == "sprocket: cannot read /no/such.conf: No such file or directory\n"
    outcome = sprocket("config", "show", "--set", "nonsense")
    assert outcome.err == "sprocket: --set takes PART.NAME=VALUE, not 'nonsense'\n"
