from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from sprocket.spark.store_files.synced import NOTHING_SYNCED, SyncedLog, synced
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.testing.disk import MemoryDisk
from tests.support import run


def of_ours(folder: Path, **numbers: int | None) -> SyncedLog:
    """What is told by a file that our broker wrote."""
    disk = MemoryDisk()
    made = Checkpoint(disk, "checkpoint")
    made.load()
    for name, value in numbers.items():
        setattr(made, name, value)
    run(made.save())
    (folder / "checkpoint").write_bytes(disk.read("checkpoint"))
    return synced(folder)


def test_our_broker_notes_up_to_where_the_log_is_on_the_disk(tmp_path: Path) -> None:
    assert of_ours(tmp_path, log_ms=90_000, replay_from=300, flushed=500) == SyncedLog(before=500)


def test_java_notes_only_a_time_and_is_trusted_up_to_shortly_before(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(struct.pack(">qqq", 90_000, 0, 0).ljust(4096, b"\0"))
    assert synced(tmp_path) == SyncedLog(until_ms=87_000)


def test_without_a_note_nothing_is_taken_for_granted(tmp_path: Path) -> None:
    assert synced(tmp_path) == NOTHING_SYNCED
    (tmp_path / "checkpoint").write_bytes(b"\0\0\0")
    assert synced(tmp_path) == NOTHING_SYNCED
    logs, stored_ms = np.array([0, 700]), np.array([1, 2_000])
    assert NOTHING_SYNCED.missing(logs, stored_ms).tolist() == [0, 1]
    assert SyncedLog(before=500).missing(logs, stored_ms).tolist() == [1]
    assert SyncedLog(until_ms=1_000).missing(logs, stored_ms).tolist() == [1]
