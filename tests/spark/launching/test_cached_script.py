from __future__ import annotations

import os
from pathlib import Path

from sprocket.spark.launching.cached_script import cached_path


def test_a_program_is_kept_and_one_that_changed_lies_beside_it(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    first = cached_path("#!/bin/sh\n", "java", cache)
    assert first is not None
    assert os.access(first, os.X_OK)
    assert cached_path("#!/bin/sh\n", "java", cache) == first
    other = cached_path("#!/bin/sh\nexit 1\n", "java", cache)
    assert other is not None
    assert other != first


def test_where_the_cache_cannot_be_written_a_new_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = cached_path("#!/bin/sh\n", "java", {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert found is not None
    assert not found.is_relative_to(tmp_path)
