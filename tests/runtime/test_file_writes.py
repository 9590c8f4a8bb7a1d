"""Lines at the end of a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sprocket.base.ports import Rotation
from sprocket.runtime.file_writes import append_lines


def test_lines_go_to_the_end_of_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for line in (b"1\n", b"2\n"):
        append_lines(str(path), line, Rotation(100, 2))
    assert path.read_bytes() == b"1\n2\n"
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_followed_by_a_new_one_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for number in range(6):
        append_lines(str(path), b"%d\n" % number, Rotation(3, 3))
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        "a": b"5\n", "a.1": b"4\n", "a.2": b"3\n",
    }  # fmt: skip


def test_a_write_that_fails_leaves_nothing_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    append_lines(str(path), b"1\n", Rotation(100, 2))

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="full"):
            append_lines(str(path), b"2\n", Rotation(100, 2))
    assert path.read_bytes() == b"1\n"


def test_a_line_that_was_cut_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n2")
    append_lines(str(path), b"3\n", Rotation(100, 2))
    assert path.read_bytes() == b"1\n2\n3\n"
