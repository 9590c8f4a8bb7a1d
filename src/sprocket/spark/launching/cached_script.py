"""Small programs that stand in for others, kept in the user's cache for the next time."""

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


def kept(script: str, name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Where a program lies as `bin/NAME` in a folder of its own; None if no folder can be written.

    Args:
        script: the program; one that changed gets another folder.
    """
    data = script.encode()
    for folder in _caches(os.environ if environment is None else environment):
        path = folder / f"{name}-{sha256(data).hexdigest()[:16]}" / "bin" / name
        with contextlib.suppress(OSError):
            _put(data, path)
            return path
    return None


def quoted(text: object) -> str:
    """A text as one word of a shell's."""
    return "'" + str(text).replace("'", "'\\''") + "'"


def _caches(environment: Mapping[str, str]) -> Iterator[Path]:
    """Folders that only this user writes; the last is a new one that goes with this process."""
    yield Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sprocket"
    temporary = tempfile.mkdtemp(prefix="sprocket-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    yield Path(temporary)


def _put(script: bytes, path: Path) -> None:
    """Writes a program unless it is there; whole, since others may be about to run it."""
    if path.is_file() and path.read_bytes() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(script)
    unfinished.chmod(stat.S_IRWXU)
    unfinished.replace(path)
