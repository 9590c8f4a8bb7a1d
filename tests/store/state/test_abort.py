"""The file that is there while a store is open."""

from __future__ import annotations

from sprocket.store.state.abort import AbortFile
from sprocket.testing.disk import MemoryDisk


def test_it_is_there_from_create_to_remove() -> None:
    disk = MemoryDisk()
    disk.make_directory("/store")
    file = AbortFile(disk, "/store")
    assert not file.exists()
    file.create()
    file.create()
    assert file.exists()
    assert disk.read("/store/abort") == b"0"
    file.remove()
    assert not AbortFile(disk, "/store").exists()
