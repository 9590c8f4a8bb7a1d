"""The beginning of the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sprocket

_SOURCES = str(Path(sprocket.__file__).parents[1])

_INTERRUPTED_WHILE_LOADING = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "sprocket.cli.main":
            signal.raise_signal(signal.SIGINT)

from sprocket.cli.entry import main
sys.meta_path.insert(0, Interrupt())
main()
"""


@pytest.mark.process
def test_ctrl_c_while_modules_are_loaded_ends_it_without_a_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_LOADING, "--version"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.process
def test_what_python_loads_for_itself_comes_after_ctrl_c_is_seen_to() -> None:
    # Without `site`, which may load anything, and before which nothing of ours can be.
    told = subprocess.run(
        [sys.executable, "-S", "-c", "import sys, sprocket.cli.entry; print(*sys.modules)"],
        capture_output=True, text=True, timeout=60, check=True, env={"PYTHONPATH": _SOURCES},
    )  # fmt: skip
    assert {"typing", "enum", "re", "signal"}.isdisjoint(told.stdout.split())
