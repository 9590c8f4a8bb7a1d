"""The demo of failover, as `make cluster` runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("etcd") is None, reason="etcd is not installed")
@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="takes two minutes: SPROCKET_LONG=1"
)
def test_nothing_is_lost_whatever_happens_to_the_group(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sprocket.demo.cluster", "--store", str(tmp_path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "restarted, one by one" in ended.stdout


def test_without_etcd_it_says_how_to_install_it(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sprocket.demo.cluster", "--store", str(tmp_path)]
    ended = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PATH": str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "apt-get install etcd-server" in ended.stdout
