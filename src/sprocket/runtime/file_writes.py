"""Writes to files as a whole: lines at the end of one that only grows, copies, names in folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys

from sprocket.base.ports import Rotation

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)


def append_lines(path: str, content: bytes, rotation: Rotation) -> None:
    """Writes lines to the end of a file, and syncs it; a full one is followed by a new one.

    Raises:
        OSError: the disk failed or is full; then nothing of them is in the file.
    """
    with contextlib.suppress(FileNotFoundError):
        if rotation.is_due(os.stat(path).st_size, len(content)):
            for source, target in rotation.moves(path):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(source, target)
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        try:
            _write(descriptor, _end_of_cut_line(descriptor, size) + content)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _end_of_cut_line(descriptor: int, size: int) -> bytes:
    if not size:
        return b""
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return b"" if os.read(descriptor, 1) == b"\n" else b"\n"


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def keep_as(path: str, backup: str) -> None:
    """Keeps a copy of a file as `backup`. A hard link does it without the file ever missing."""
    link = f"{backup}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.remove(link)
    try:
        os.link(path, link)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, link)
    os.replace(link, backup)


def sync_directory(path: str) -> None:
    """Makes names in a folder durable. Windows has no such call, and needs none."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
