"""State files on a real disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sprocket.runtime.disk import SystemDisk


def test_only_the_user_of_the_process_may_read_a_secret_file(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    path.write_text("old")
    path.chmod(0o644)
    (tmp_path / "accounts.json.tmp").write_text("what a crash has left")
    before = os.umask(0)
    try:
        SystemDisk().replace_secret(str(path), b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["accounts.json"]


def test_a_file_that_cannot_be_replaced_is_still_there(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    path.write_text("old")
    (tmp_path / "accounts.json.tmp").mkdir()
    with pytest.raises(OSError, match=r"accounts\.json\.tmp"):
        SystemDisk().replace_secret(str(path), b"new")
    assert path.read_text() == "old"
