"""The log as one run of bytes."""

from __future__ import annotations

import asyncio
import errno

import pytest

from sprocket.base.errors import DiskFull, OffsetOutOfRange, StoreError
from sprocket.message.hosts import pack
from sprocket.message.record import Encoder, topic_part
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import HOST, a_draft
from tests.support import run


def empty(disk: MemoryDisk | None = None, file_bytes: int = 256) -> CommitLog:
    log = CommitLog(disk or MemoryDisk(), LogPaths(("/log",)), file_bytes)
    log.load()
    log.set_end(0)
    return log


def write(log: CommitLog, record: bytes) -> int:
    if log.end + len(record) > log.room_end:
        log.ensure_space(len(record))
    at = log.end
    log.buffer[at - log.base : at - log.base + len(record)] = record
    log.end += len(record)
    return at


def record_for(log: CommitLog, body: bytes = b"", born_host: bytes = HOST) -> bytes:
    draft = a_draft(body, born_host=born_host)
    return Encoder(HOST).encode(
        draft, topic_part(b"orders"), log_offset=log.end, queue_offset=0, stored_ms=1234
    )


def test_the_rest_of_a_file_is_marked_blank_where_a_record_does_not_fit() -> None:
    disk = MemoryDisk()
    log = empty(disk)
    assert log.record_bytes_max == 248
    write(log, b"x" * 100)
    assert write(log, b"y" * 148) == 100
    assert write(log, b"z" * 100) == 256
    raw = disk.read(f"/log/{0:020d}")
    assert raw is not None
    assert raw[248:] == (8).to_bytes(4, "big") + bytes.fromhex("cbd43194")


def test_eight_bytes_stay_free_at_the_end_of_a_file() -> None:
    log = empty()
    write(log, b"x" * 100)
    assert write(log, b"y" * 149) == 256
    raw = bytes(log.slice(0, 256))
    assert raw[100:108] == (156).to_bytes(4, "big") + bytes.fromhex("cbd43194")


def test_a_slice_lies_in_one_file_and_before_the_end() -> None:
    log = empty()
    write(log, b"x" * 200)
    write(log, b"y" * 100)
    assert bytes(log.slice(256, 259)) == b"yyy"
    assert bytes(log.slice(0, 3)) == b"xxx"
    for start, end in ((250, 260), (256, 357), (9999, 10000)):
        with pytest.raises(OffsetOutOfRange):
            log.slice(start, end)


@pytest.mark.parametrize("born", ["1.2.3.4:5", "[::1]:5"])
def test_a_record_is_looked_up_where_it_begins_and_nowhere_else(born: str) -> None:
    log = empty(file_bytes=512)
    record = record_for(log, b"abc", pack(born))
    at = write(log, record)
    assert bytes(log.record_at(at)) == record
    assert log.stored_ms_at(at) == 1234
    for other in (-1, at + 1, at + 10, log.end, log.end + 1000):
        with pytest.raises(OffsetOutOfRange):
            log.record_at(other)


def test_a_record_that_tells_another_place_is_not_given() -> None:
    log = empty(file_bytes=1024)
    inner = record_for(log)
    at = write(log, record_for(log, inner + b"more"))
    assert at == 0
    with pytest.raises(OffsetOutOfRange):
        log.record_at(bytes(log.slice(0, log.end)).index(inner))


def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    disk = FaultyDisk()
    log = empty(disk)
    write(log, b"x" * 200)
    disk.fail("map", errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.ensure_space(100)
    assert (log.end, bytes(log.buffer[200:208])) == (200, bytes(8))
    assert write(log, b"y" * 100) == 256


def test_reserving_makes_all_files_that_a_batch_needs() -> None:
    disk = FaultyDisk()
    log = empty(disk)
    log.reserve([100, 100, 100, 200])
    assert log.segments.starts == [0, 256, 512]
    disk.fail("map", errno.ENOSPC, times=9)
    assert [write(log, b"x" * size) for size in (100, 100, 100, 200)] == [0, 100, 256, 512]


def test_the_next_file_is_prepared_once_the_current_one_is_mostly_full() -> None:
    log = empty()
    write(log, b"x" * 190)
    log.prepare_next()
    assert log.segments.starts == [0]
    write(log, b"x" * 10)
    log.prepare_next()
    assert log.segments.starts == [0, 256]
    assert write(log, b"y" * 100) == 256


def test_cutting_clears_what_lies_behind() -> None:
    log = empty()
    for _ in range(3):
        write(log, b"x" * 200)
    log.cut(300, is_torn=True)
    assert log.segments.starts == [0, 256]
    assert write(log, b"y" * 10) == 300
    assert bytes(log.segments.at(256).buffer[54:]) == bytes(256 - 54)


@pytest.mark.parametrize("is_torn", [False, True])
def test_the_rest_of_a_large_file_is_cleared(is_torn: bool) -> None:
    log = empty(file_bytes=4 << 20)
    write(log, b"x" * ((4 << 20) - 8))
    log.cut(100, is_torn=is_torn)
    assert not any(bytes(log.segments.at(0).buffer[100:]))
    assert write(log, b"y" * ((4 << 20) - 108)) == 100


def test_a_full_disk_is_found_before_the_record_is_written() -> None:
    disk = FaultyDisk()
    log = empty(disk, 4 << 20)
    write(log, b"x" * 100_000)
    disk.fail("zero", errno.ENOSPC, times=2)
    assert write(log, b"y" * 100_000) == 100_000, "there is room already"
    with pytest.raises(DiskFull):
        log.ensure_space(300_000)
    with pytest.raises(DiskFull):
        log.reserve([300_000])
    assert (log.end, any(bytes(log.buffer[200_000:]))) == (200_000, False)
    assert write(log, b"z" * 300_000) == 200_000


def test_room_is_prepared_ahead_of_the_end_and_asked_for_in_time() -> None:
    async def check() -> None:
        disk = FaultyDisk()
        log = empty(disk, 64 << 20)
        write(log, b"x" * 1000)
        assert log.is_low.is_set()
        for _ in range(10):
            await log.prepare()
        ahead = log.segments.at(0).prepared_to - log.end
        assert ahead > 16 << 20
        log.is_low.clear()
        disk.fail("zero", errno.ENOSPC, times=9)
        while not log.is_low.is_set():
            write(log, b"y" * 100_000)
        assert log.end < ahead, "asked for when half is used"
        while log.end + 200_000 < ahead:
            write(log, b"y" * 100_000)
        with pytest.raises(DiskFull):
            await log.prepare()

    run(check())


def test_records_that_overtake_the_preparing_are_kept() -> None:
    async def check() -> None:
        log = empty(MemoryDisk(), 4 << 20)
        write(log, b"x" * 1000)
        preparing = asyncio.ensure_future(log.prepare())
        await asyncio.sleep(0)
        write(log, b"y" * 400_000)
        await preparing
        assert bytes(log.slice(1000, log.end)) == b"y" * 400_000
        assert write(log, b"z" * 1_000_000) == 401_000
        assert not any(bytes(log.buffer[log.end :]))

    run(check())


def test_cutting_where_a_file_begins_removes_it() -> None:
    log = empty()
    for _ in range(2):
        write(log, b"x" * 200)
    log.cut(256, is_torn=True)
    assert log.segments.starts == [0]
    assert write(log, b"y" * 10) == 256


def test_cutting_everything_leaves_an_empty_log() -> None:
    log = empty()
    write(log, b"x" * 200)
    log.cut(0, is_torn=False)
    assert (log.start, log.end, bytes(log.buffer)) == (0, 0, bytes(256))


def test_the_log_is_not_cut_where_it_is_not() -> None:
    log = empty()
    write(log, b"x" * 200)
    with pytest.raises(StoreError):
        log.cut(257, is_torn=True)


def test_a_closed_log_keeps_slices_that_are_out() -> None:
    log = empty()
    write(log, b"x" * 200)
    kept = log.slice(0, 200)
    log.close()
    assert bytes(kept) == b"x" * 200
    with pytest.raises(OffsetOutOfRange):
        log.record_at(0)
