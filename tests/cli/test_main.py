"""The command `sprocket` as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main

from sprocket.cli.main import app
from tests.cli.parts import commands, sprocket

GROUPS = commands(typer.main.get_command(app), leaves=False)
COMMANDS = commands(typer.main.get_command(app))


def test_help_names_every_command() -> None:
    outcome = sprocket("--help")
    assert outcome.code == 0
    for name in {each.split()[0] for each in (*GROUPS, *COMMANDS)}:
        assert name in outcome.out


@pytest.mark.parametrize("name", [*GROUPS, *COMMANDS])
def test_every_command_has_help_with_examples_of_itself(name: str) -> None:
    outcome = sprocket(*name.split(), "--help", COLUMNS="300")
    assert outcome.code == 0
    assert f"Usage: sprocket {name}" in outcome.out
    examples = outcome.out.partition("Examples:")[2]
    assert f" sprocket {name}" in examples


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
