"""Keeps small scripts that replace other programs in the user's cache folder."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path


def cached_path(
    script: str, name: str, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The path of a script, written as `bin/NAME` in a folder of its own; None if that fails.

    Args:
        script: the text; a script that changed gets another folder.
        name: the file's name.
        environment: gives the cache folder; None for that of this process.
    """
    data = script.encode()
    for folder in _caches(os.environ if environment is None else environment):
        path = folder / f"{name}-{sha256(data).hexdigest()[:16]}" / "bin" / name
        with contextlib.suppress(OSError):
            _put(data, path)
            return path
    return None


def quoted(text: object) -> str:
    """A text quoted as one word of a shell script."""
    return "'" + str(text).replace("'", "'\\''") + "'"


def _caches(environment: Mapping[str, str]) -> Iterator[Path]:
    """Folders to try; only this user writes to them. The last is removed when the process ends."""
    yield Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sprocket"
    temporary = tempfile.mkdtemp(prefix="sprocket-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    yield Path(temporary)


def _put(script: bytes, path: Path) -> None:
    """Writes a script unless it is there; renames it into place, as others may be starting it."""
    if path.is_file() and path.read_bytes() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(script)
    unfinished.chmod(stat.S_IRWXU)
    unfinished.replace(path)
