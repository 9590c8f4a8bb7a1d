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
