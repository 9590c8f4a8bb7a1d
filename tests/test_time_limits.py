"""A run of tests ends, whatever its tests wait for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import LONGEST

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import threading
import pytest
from tests.time_limits import pytest_runtest_setup, pytest_runtest_teardown, pytest_unconfigure


@pytest.fixture
def endless():
    yield
    threading.Event().wait()


@pytest.fixture
def endless_too():
    yield
    threading.Event().wait()


def test_fails(endless, endless_too):
    assert False


@pytest.mark.timeout(1)
def test_waits_while_it_ends():
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of signals here")
def test_what_ends_a_test_has_a_limit_too(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(TESTS)
    (tmp_path / "test_it.py").write_text("from conftest import *")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPROCKET_TEARDOWN_SECONDS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert "2 failed, 1 error" in ended.stdout, ended.stdout + ended.stderr
