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


_CLOSED = """
import os, sys
from sprocket.cli import entry, main

def run():
    print("to nobody")
    assert sys.stdin.read() == ""
    assert all(os.path.samestat(os.fstat(number), os.stat(os.devnull)) for number in range(3))
    os._exit(7)

main.main = run
entry.main()
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes the streams")
def test_a_standard_stream_that_is_closed_is_the_null_device() -> None:
    """Otherwise a log file or a socket would get its number."""
    closing = 'exec "$0" -c "$1" 0<&- 1>&- 2>&-'
    done = subprocess.run(["sh", "-c", closing, sys.executable, _CLOSED], timeout=60, check=False)
    assert done.returncode == 7
