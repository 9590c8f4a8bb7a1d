"""State files, replaced so that a crash leaves the old or the new one, never a mix."""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO

from sprocket.runtime.file_writes import keep_as, sync_directory


def replace_file(path: str, content: bytes, *, backup: bool) -> None:
    """Writes a new file, syncs it, renames it, and syncs the folder.

    Args:
        backup: whether the previous version is kept as `path.bak`.

    Raises:
        OSError: the disk refuses it; the old file is still there.
    """
    draft = f"{path}.tmp"
    with open(draft, "wb") as file:
        _write_out(file, content)
    if backup and os.path.exists(path):
        keep_as(path, f"{path}.bak")
    _rename(draft, path)


def replace_secret_file(path: str, content: bytes) -> None:
    """The same without a backup; only the user of this process may read the file.

    Raises:
        OSError: as `replace_file`.
    """
    draft = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.remove(draft)  # what a crash has left
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        _write_out(file, content)
    _rename(draft, path)


def _rename(draft: str, path: str) -> None:
    os.replace(draft, path)
    sync_directory(os.path.dirname(path))


def _write_out(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
