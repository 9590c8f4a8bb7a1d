"""A file that one process holds."""

from __future__ import annotations

from pathlib import Path

from sprocket.runtime.lock import FileLock


def test_a_held_file_is_refused_until_it_is_released(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first = FileLock.take(path)
    assert first is not None
    assert FileLock.take(path) is None
    first.release()
    first.release()
    second = FileLock.take(path)
    assert second is not None
    second.release()
    assert (tmp_path / "lock").exists()


def test_a_lock_whose_file_was_taken_away_is_not_held(tmp_path: Path) -> None:
    lock = FileLock.take(str(tmp_path / "lock"))
    assert lock is not None
    assert lock.is_held
    (tmp_path / "lock").unlink()
    assert not lock.is_held
    (tmp_path / "lock").touch()
    assert not lock.is_held
    lock.release()
    assert not lock.is_held
