"""`sprocket console`: its options, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the console needs the extra console")

pytestmark = pytest.mark.process


def test_it_listens_shows_a_page_and_ends_on_a_signal() -> None:
    command = [sys.executable, "-m", "sprocket.cli", "console", "-n", "127.0.0.1:1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"sprocket console is ready: (http://127\.0\.0\.1:\d+/)\n", line)
            assert found, line
            with urllib.request.urlopen(found[1], timeout=120) as answer:
                page = answer.read().decode()
            assert "<title>Overview · Sprocket</title>" in page
            # Nothing is fetched from elsewhere.
            assert not re.search(r"(src|href)=.?(https?:)?//", page)
        finally:
            process.terminate()
        assert process.wait(60) == 0


def test_settings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sprocket.cli", "console", "--certificate", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "--certificate and --key go together" in ended.stderr
