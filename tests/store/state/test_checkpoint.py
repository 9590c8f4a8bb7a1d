"""The checkpoint file."""

from __future__ import annotations

import struct

from sprocket.store.state.checkpoint import FILE_BYTES, Checkpoint
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.support import run

PATH = "/store/checkpoint"


def a_disk() -> FaultyDisk:
    disk = FaultyDisk(seed=5)
    disk.make_directory("/store")
    return disk


def a_checkpoint(disk: MemoryDisk) -> Checkpoint:
    checkpoint = Checkpoint(disk, PATH)
    checkpoint.load()
    return checkpoint


def test_a_new_one_knows_nothing() -> None:
    checkpoint = a_checkpoint(a_disk())
    assert (checkpoint.log_ms, checkpoint.queues_ms, checkpoint.index_ms) == (0, 0, 0)
    assert checkpoint.replay_from is None
    assert checkpoint.safe_ms == 0


def test_what_was_saved_outlives_a_power_loss() -> None:
    disk = a_disk()
    checkpoint = a_checkpoint(disk)
    checkpoint.log_ms, checkpoint.queues_ms, checkpoint.replay_from = 9000, 8000, 1234
    run(checkpoint.save())
    again = a_checkpoint(disk.after_power_loss())
    assert (again.log_ms, again.queues_ms, again.replay_from) == (9000, 8000, 1234)
    assert again.safe_ms == 5000


def test_java_finds_its_numbers_in_front() -> None:
    disk = a_disk()
    checkpoint = a_checkpoint(disk)
    checkpoint.log_ms, checkpoint.queues_ms, checkpoint.index_ms = 3, 4, 5
    run(checkpoint.save())
    raw = disk.read(PATH)
    assert raw is not None
    assert len(raw) == FILE_BYTES
    assert struct.unpack_from(">qqqqq", raw) == (3, 4, 5, 0, 0)


def test_numbers_that_are_java_s_alone_are_kept() -> None:
    disk = a_disk()
    disk.replace(PATH, struct.pack(">qqqqq", 1, 2, 3, 77, 88) + bytes(FILE_BYTES - 40))
    checkpoint = a_checkpoint(disk)
    assert checkpoint.replay_from is None
    run(checkpoint.save())
    raw = disk.read(PATH)
    assert raw is not None
    assert struct.unpack_from(">qqqqq", raw) == (1, 2, 3, 77, 88)


def test_the_confirmed_offset_is_java_s_fifth_number_and_a_cut_lowers_it() -> None:
    disk = a_disk()
    disk.replace(PATH, struct.pack(">qqqqq", 1, 2, 3, 77, 88) + bytes(FILE_BYTES - 40))
    checkpoint = a_checkpoint(disk)
    assert checkpoint.confirmed == 88
    run(checkpoint.save_for_cut(100, synced=100))
    assert a_checkpoint(disk).confirmed == 88
    run(checkpoint.save_for_cut(60, synced=100))
    raw = disk.read(PATH)
    assert raw is not None
    assert struct.unpack_from(">qqqqq", raw) == (1, 2, 3, 77, 60)


def test_a_place_is_not_trusted_once_java_has_written_other_times() -> None:
    disk = a_disk()
    checkpoint = a_checkpoint(disk)
    checkpoint.replay_from = 1234
    run(checkpoint.save())
    raw = bytearray(disk.read(PATH) or b"")
    raw[0:8] = (9999).to_bytes(8, "big")
    disk.replace(PATH, bytes(raw))
    again = a_checkpoint(disk)
    assert again.replay_from is None
    assert again.log_ms == 9999


def test_a_file_of_another_size_is_made_anew() -> None:
    disk = a_disk()
    disk.replace(PATH, b"short")
    assert a_checkpoint(disk).log_ms == 0
    assert disk.size(PATH) == FILE_BYTES


def test_a_plain_memory_disk_will_do() -> None:
    disk = MemoryDisk()
    disk.make_directory("/store")
    a_checkpoint(disk).close()
