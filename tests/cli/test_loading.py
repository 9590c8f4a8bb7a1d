"""A check of settings, and a start with them, go one road."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from sprocket.cli import console, serve
from sprocket.delay.levels.levels import DelayLevels
from sprocket.store.log.paths import LogPaths
from sprocket.store.writing.retention import RetentionRules
from tests.cli.parts import sprocket

LINES = (
    "brokerName=b",
    'brokerName="b"',
    "brokerName=b # the first",
    "brokerId=1",
    "brokerId=0",
    "brokerIP1=10.0.0.7",
    "brokerIP1=0.0.0.0",
    "brokerIP1=10.0.0.7:10911",
    "bindAddress=0.0.0.0",
    "bindAddress=[::1]",
    "namesrvAddr=127.0.0.1",
    "namesrvAddr=127.0.0.1:9876;b:9876",
    "namesrvAddr=http://n:9876",
    "listenPort=10911",
    "listenPort=70000",
    "storePathRootDir=~/store",
    "storePathRootDir=$HOME/store",
    "storePathRootDir=/proc/self/status/store",
    "storePathCommitLog=/tmp/a;/tmp/b",
    "storePathCommitLog=/tmp/a;/tmp/a/",
    "readOnlyCommitLogStorePaths=/tmp/a;/tmp/b",
    "deleteWhen=04;16",
    "deleteWhen=4 am",
    "messageDelayLevel=1s 5m",
    "messageDelayLevel=1s 5x",
    "mapedFileSizeConsumeQueue=1001",
    "mapedFileSizeConsumeQueue=300000",
    "maxMessageSize=4MiB",
    "broker.filter_uploaders=10.0.0.0/8",
    "broker.filter_uploaders=10.0.0.0/99",
    "aclEnable=true",
    "aclEnable=false",
    "abortFile=/tmp/abort",
)


def _node(server: Any) -> Any:
    """The node, whether a console is over it or not."""
    return getattr(server, "server", server)


@pytest.mark.parametrize("program", ["broker", "standalone"])
@given(lines=some.lists(some.sampled_from(LINES), max_size=4))
@settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_a_check_says_right_exactly_for_what_a_start_takes(
    program: str, lines: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.conf"
    file.write_text("".join(f"{line}\n" for line in lines))
    started: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (serve, console):
            patch.setattr(
                module, "serve_until_signal", lambda server, ready, **rest: started.append(server)
            )
        start = sprocket(program, "--config", str(file))
    check = sprocket("config", "check", str(file), "--for", program)
    assert check.code == start.code, (check, start)
    assert (start.code == 0) is bool(started)
    assert [line for line in check.err.splitlines() if ": note: " not in line] == [
        line for line in start.err.splitlines() if ": note: " not in line
    ]
    for server in started:
        # What a start computes from settings before it opens anything.
        is_broker = program == "broker"
        config = server.server._settings.store if is_broker else _node(server)._store_config
        DelayLevels.parse(config.delay_levels)
        RetentionRules.of(config)
        LogPaths.of("/", config.log_paths, config.log_read_only_paths)


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("namesrv.conf", "bindAddress=0.0.0.0\n", "valid for a nameserver"),
        ("a.conf", "kvConfigPath=/tmp/kv.json\n", "valid for a nameserver"),
        ("namesrv.conf", "brokerName=b\n", "valid for a broker"),
        ("a.conf", "listenPort=1\n", "valid for a broker"),
        ("a.toml", "[nameserver]\nport = 1\n", "valid"),
    ],
)
def test_a_file_is_checked_for_the_program_that_it_is_for(
    tmp_path: Path, name: str, content: str, answer: str
) -> None:
    file = tmp_path / name
    file.write_text(content)
    outcome = sprocket("config", "check", str(file))
    assert outcome.out == f"{file}: {answer}\n"


def test_a_folder_that_cannot_be_made_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "a.toml"
    file.write_text(f'[store]\npath = "{tmp_path}/file/store"\n')
    outcome = sprocket("config", "check", str(file))
    assert outcome.err == (
        f"sprocket: {file}:2: store.path is '{tmp_path}/file/store', but {tmp_path}/file is no "
        "folder\n"
    )


def test_each_fault_has_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("brokerNmae=b\nlistenPort=x\n")
    outcome = sprocket("broker", "--config", str(file), "--set", "store.flsh=1", "--set", "x")
    assert outcome.code == 2
    assert [line.split(": ")[:2] for line in outcome.err.splitlines()] == [
        ["sprocket", "--set takes PART.NAME=VALUE, not 'x'"],
        ["sprocket", f"{file}:1"],
        ["sprocket", f"{file}:2"],
        ["sprocket", "command line (store.flsh)"],
    ]


def test_keys_of_which_one_is_missing_are_refused() -> None:
    outcome = sprocket("config", "show", SPROCKET_CLIENT_ACCESS_KEY="me")
    assert outcome.code == 2
    assert "client.access_key and secret_key belong together" in outcome.err


def test_a_variable_that_sets_nothing_is_one_note(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = sprocket("config", "show", SPROCKET_NAMESERVERZ="a:1", SPROCKET_NAMESERVERS="a:1")
    assert outcome.err == (
        "sprocket: note: environment variable SPROCKET_NAMESERVERZ sets nothing; did you mean "
        "'SPROCKET_NAMESERVERS'?\n"
    )
