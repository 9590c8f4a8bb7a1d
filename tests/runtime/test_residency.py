"""What the kernel says of mapped files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sprocket.runtime.disk import SystemDisk
from tests.support import run

SIZE = 4 << 20


def test_what_was_just_written_is_in_memory(tmp_path: Path) -> None:
    file = SystemDisk().map(str(tmp_path / "log"), SIZE)
    file.buffer[:] = b"x" * SIZE
    assert file.is_in_memory(0, SIZE)
    assert file.is_in_memory(5, 5)
    file.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_what_was_put_out_of_memory_comes_back_by_a_load(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * SIZE)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    file = SystemDisk().map(str(path), SIZE)
    if file.is_in_memory(0, SIZE):
        pytest.skip("this file system keeps everything in memory")
    run(file.load(5000, SIZE - 1))
    assert file.is_in_memory(5000, SIZE - 1)
    assert bytes(file.buffer[5000:5003]) == b"xxx"
    file.close()
