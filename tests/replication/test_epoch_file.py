"""The file of epochs survives a crash at any moment, and a broken part."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from sprocket.base.errors import StoreError
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.epochs import EpochList
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT

PATH = f"{ROOT}/epochFileCheckpoint"


def made(disk: MemoryDisk, log_start: int = 0, log_end: int = 1000) -> EpochFile:
    disk.make_directory(ROOT)
    file = EpochFile(disk, ROOT)
    file.load(log_start, log_end)
    return file


def test_what_is_added_is_there_after_a_loss_of_power() -> None:
    disk = FaultyDisk(1)
    file = made(disk)
    file.begin(3, 0, 0)
    file.begin(5, 0, 700)
    after = disk.after_power_loss()
    assert made(after).epochs == EpochList([(3, 0), (5, 700)])
    assert after.read(PATH) == after.read(PATH + ".bak") == b"2\n%d\n3-0\n5-700\n" % _sum(after)


def _sum(disk: MemoryDisk) -> int:
    raw = disk.read(PATH)
    assert raw is not None
    return int(raw.split(b"\n")[1])


def test_a_log_without_epochs_becomes_the_first_one() -> None:
    file = made(MemoryDisk(), log_start=200)
    file.begin(1, 200, 900)
    assert file.epochs == EpochList([(1, 200)])
    with pytest.raises(ValueError, match="does not follow"):
        file.begin(1, 200, 950)


def test_epochs_that_the_log_has_lost_are_dropped() -> None:
    disk = MemoryDisk()
    file = made(disk)
    for epoch, end in ((1, 0), (2, 300), (3, 600)):
        file.begin(epoch, 0, end)
    assert made(disk.after_kill(), log_end=599).epochs == EpochList([(1, 0), (2, 300)])
    assert made(disk.after_kill(), 300, 600).epochs == EpochList([(2, 300), (3, 600)])


@pytest.mark.parametrize("raw", [b"", b"1\n5\n1-0\n", None])
def test_either_file_will_do(raw: bytes | None) -> None:
    for damaged in (PATH, f"{PATH}.bak"):
        disk = MemoryDisk()
        made(disk).begin(4, 0, 0)
        if raw is None:
            disk.remove(damaged)
        else:
            disk.replace(damaged, raw, backup=False)
        assert made(disk.after_kill()).epochs == EpochList([(4, 0)])


def test_with_both_broken_it_does_not_begin_anew() -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    disk.replace(PATH, b"what", backup=False)
    with pytest.raises(StoreError, match="cannot be used"):
        made(disk)


def test_a_list_that_becomes_empty_leaves_no_backup_that_would_be_read() -> None:
    disk = MemoryDisk()
    file = made(disk)
    file.begin(4, 0, 0)
    file.cut(0)
    assert not made(disk.after_kill()).epochs


def test_what_the_disk_refuses_is_not_counted() -> None:
    disk = FaultyDisk(1)
    file = made(disk)
    file.begin(1, 0, 0)
    disk.fail("replace", errno.ENOSPC)
    with suppress(OSError):
        file.add(2, 100)
        raise AssertionError("it was taken")
    assert file.epochs == EpochList([(1, 0)])
    assert made(disk.after_kill()).epochs == EpochList([(1, 0)])
