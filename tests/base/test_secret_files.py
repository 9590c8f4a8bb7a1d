from __future__ import annotations

import os
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.base.secret_files import read_secret_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.toml"
    path.write_bytes(b"1234")
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_of_its_owner_only_is_read(file: Path, mode: int) -> None:
    file.chmod(mode)
    found = read_secret_file(file, 4)
    found.check()
    assert found.content == b"1234"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_or_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigError, match=r"others may read it: chmod 600 .*secrets\.toml"):
        read_secret_file(file, 4).check()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of root's")
def test_a_mounted_file_of_roots_may_be_readable_by_the_group(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.chmod(0o640)
    assert not read_secret_file(file, 4).is_private
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert read_secret_file(file, 4).is_private
    file.chmod(0o660)
    assert not read_secret_file(file, 4).is_private


def test_a_file_that_is_missing_or_too_long_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"larger than 3 bytes"):
        read_secret_file(file, 3)
    with pytest.raises(ConfigError, match=r"cannot read .*none: No such file"):
        read_secret_file(tmp_path / "none", 3)


@pytest.mark.parametrize("path", ["nowhere/secrets", "a\0b", "."])
def test_what_cannot_be_read_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot read "):
        read_secret_file(Path(path), 4)
