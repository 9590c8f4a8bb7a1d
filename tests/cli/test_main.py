"""The command `sprocket` as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.parts import sprocket

COMMANDS = (
    "standalone",
    "nameserver",
    "broker",
    "send",
    "consume",
    "topic",
    "group",
    "message",
    "deadletters",
    "cluster",
    "config",
)


def test_help_names_every_command() -> None:
    outcome = sprocket("--help")
    assert outcome.code == 0
    for name in COMMANDS:
        assert name in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    outcome = sprocket(name, "--help")
    assert outcome.code == 0
    assert "Usage: sprocket" in outcome.out


@pytest.mark.parametrize(
    "command",
    [
        ("standalone",), ("nameserver",), ("broker",), ("send",), ("consume",), ("cluster",),
        ("topic", "list"), ("topic", "create"), ("topic", "delete"), ("topic", "route"),
        ("topic", "status"), ("config", "show"), ("config", "reference"), ("config", "check"),
    ],
)  # fmt: skip
def test_help_has_examples(command: tuple[str, ...]) -> None:
    examples = sprocket(*command, "--help").out.partition("Examples:")[2]
    assert f" sprocket {' '.join(command)}" in examples


def test_the_version_is_printed() -> None:
    from sprocket import __version__

    assert sprocket("--version").out == f"sprocket {__version__}\n"


def test_nobody_there_is_one_line() -> None:
    outcome = sprocket("topic", "list", "--nameserver", "127.0.0.1:1")
    assert outcome.code == 1
    assert outcome.err.startswith("sprocket: 127.0.0.1:1 cannot be reached")
    assert outcome.err.count("\n") == 1


def test_a_missing_file_is_one_line() -> None:
    outcome = sprocket("send", "orders", "--file", "/no/such/file")
    assert (outcome.code, outcome.err) == (
        1,
        "sprocket: /no/such/file: No such file or directory\n",
    )


def test_a_wrong_name_server_is_one_line() -> None:
    outcome = sprocket("cluster", "--nameserver", "nowhere")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "'nowhere'" in outcome.err


def test_it_runs_as_a_module_and_loads_no_more_than_it_needs() -> None:
    """Without this, `sprocket --help` would be slow."""
    code = (
        "import sys, sprocket.cli.main\n"
        "slow = {'asyncio', 'msgspec', 'rich', 'uvloop', 'pyspark', 'hypothesis', 'lz4'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    done = subprocess.run(
        [sys.executable, "-m", "sprocket", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("sprocket ")
