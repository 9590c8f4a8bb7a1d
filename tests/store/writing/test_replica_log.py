"""A slave's store: the master's files byte for byte, whatever pieces they come in."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import DiskFull, StoreError
from sprocket.message.record import MAGIC_AT, QUEUE_OFFSET_AT, body_crc
from sprocket.replication.frames import FrameDecoder
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.store.writing.replica_log import CopyMismatch, LogCopy
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "ha"


async def slave(
    disk: MemoryDisk, *, config: StoreConfig = SMALL, start: int | None = None
) -> Store:
    store = await Store.open(
        disk=disk,
        clock=ManualClock(),
        root=ROOT,
        config=config,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
        is_copy=True,
    )
    if start is not None:
        store.replica.copy().append(start, b"")
    return store


def stream(master: Store, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    while piece := bytes(master.replica.read(start, size)):
        yield start, piece
        start += len(piece)


async def filled(disk: MemoryDisk, count: int = 60, *, config: StoreConfig = SMALL) -> Store:
    """A store of several files, with all kinds of records."""
    store = await opened(disk, config=config)
    random = Random(count)
    for number in range(count):
        keys = f"k{number}"
        properties = f"TAGS\x01a\x02KEYS\x01{keys}\x02UNIQ_KEY\x01U{number:031d}\x02".encode()
        store.append(
            a_draft(
                b"%d " % number + bytes(random.randrange(200)),
                topic=random.choice(("orders", "bills")),
                queue_number=random.randrange(3),
                properties=properties,
                keys=keys,
                unique_key=f"U{number:031d}",
                sys_flag=4 if number % 11 == 5 else 0,
                born_host=bytes(16) + b"\0\0\0\1" if number % 7 == 3 else HOST,
            )
        )
    return store


def append_all(copy: LogCopy, pieces: Iterable[tuple[int, bytes]]) -> None:
    for piece in pieces:
        copy.append(*piece)


def log_files(disk: MemoryDisk) -> dict[str, bytes]:
    folder = f"{ROOT}/commitlog"
    return {name: disk.read(f"{folder}/{name}") or b"" for name in disk.names(folder)}


def everything(store: Store) -> dict[tuple[str, int], list[bytes]]:
    return {
        (topic, number): bodies(store, topic, number)
        for topic, numbers in store.queues().items()
        for number in numbers
    }


@pytest.mark.parametrize("size", [1, 7, 100, 333, 1 << 20])
def test_a_copy_has_the_same_files_and_queues(size: int) -> None:
    async def main(_: object) -> None:
        disk, copied = MemoryDisk(), MemoryDisk()
        master, store = await filled(disk), await slave(copied)
        copy = store.replica.copy()
        for offset, piece in stream(master, 0, size):
            copy.append(offset, piece)
            assert store.log_end <= copy.end
        assert store.log_end == copy.end == master.log_end
        assert everything(store) == everything(master)
        assert len(log_files(disk)) > 3
        assert store.find("orders", "k0", count_max=1) == master.find("orders", "k0", count_max=1)
        await master.close()
        await store.close()
        assert log_files(copied) == log_files(disk)
        again = await slave(copied)
        assert again.log_end == copy.end
        assert everything(again)
        await again.close()

    simulate(main)


def test_a_link_that_ends_amid_a_record_goes_on_at_the_last_whole_one() -> None:
    async def main(_: object) -> None:
        random = Random(3)
        disk, copied = MemoryDisk(), MemoryDisk()
        master, store = await filled(disk), await slave(copied)
        while store.log_end < master.log_end:
            copy = store.replica.copy()
            for offset, piece in stream(master, store.log_end, 1 + random.randrange(300)):
                copy.append(offset, piece)
                if random.random() < 0.3:
                    break
        assert everything(store) == everything(master)
        await master.close()
        await store.close()
        assert log_files(copied) == log_files(disk)

    simulate(main)


def test_an_empty_log_may_begin_with_a_later_file_and_then_survives_a_loss_of_power() -> None:
    async def main(_: object) -> None:
        master = await filled(MemoryDisk())
        start = master.log_end - master.log_end % SMALL.log_file_bytes
        copied = FaultyDisk(5)
        store = await slave(copied)
        copy = store.replica.copy()
        for offset, piece in stream(master, start, 500):
            copy.append(offset, piece)
        assert (store.log_start, store.log_end) == (start, master.log_end)
        await store.sync()
        end = store.flushed.value
        assert end == master.log_end
        again = await slave(copied.after_power_loss())
        assert again.log_end == end
        assert list(everything(again).values())
        for (topic, number), found in everything(again).items():
            assert bodies(master, topic, number)[-len(found) :] == found

    simulate(main)


def test_bytes_that_are_not_the_next_ones_are_refused() -> None:
    async def main(_: object) -> None:
        master, store = await filled(MemoryDisk()), await slave(MemoryDisk())
        first, second, third = list(stream(master, 0, 400))[:3]
        copy = store.replica.copy()
        copy.append(*first)
        for wrong in (first, third, (second[0] + 1, second[1])):
            with pytest.raises(CopyMismatch, match="sends its log from"):
                copy.append(*wrong)
        copy.append(*second)
        with pytest.raises(CopyMismatch, match="files of 2048 bytes"):
            (await slave(MemoryDisk())).replica.copy().append(1000, b"")

    simulate(main)


def _flipped(record: bytes, at: int) -> bytes:
    return record[:at] + bytes([record[at] ^ 0x41]) + record[at + 1 :]


@pytest.mark.parametrize("at", [0, MAGIC_AT, 31, 100])
def test_a_damaged_record_is_refused_before_it_counts(at: int) -> None:
    async def main(_: object) -> None:
        master, store = await opened(MemoryDisk()), await slave(MemoryDisk())
        good = master.append(a_draft(b"good" * 10))
        bad = master.append(a_draft(b"bad" * 10))
        data = bytes(master.replica.read(0, 1 << 20))
        copy = store.replica.copy()
        end = good.record_bytes
        damaged = data[:end] + _flipped(data[end:], at) + bytes(bad.record_bytes)
        with pytest.raises(CopyMismatch):
            copy.append(0, damaged)
        assert store.log_end == end
        assert bodies(store) == [b"good" * 10]
        store.replica.copy().append(end, data[end:])
        assert bodies(store) == bodies(master)

    simulate(main)


@pytest.mark.parametrize("offset", [-1, 1 << 40, (1 << 63) - 1])
def test_a_queue_offset_that_cannot_be_is_refused(offset: int) -> None:
    async def main(_: object) -> None:
        master, store = await opened(MemoryDisk()), await slave(MemoryDisk())
        first = master.append(a_draft())
        master.append(a_draft())
        data = bytearray(master.replica.read(0, 1 << 20))
        at = first.record_bytes + QUEUE_OFFSET_AT
        data[at : at + 8] = offset.to_bytes(8, "big", signed=True)
        copy = store.replica.copy()
        with pytest.raises(CopyMismatch, match="goes on at"):
            copy.append(0, bytes(data))
        assert store.log_end == 0

    simulate(main)


def test_a_record_that_the_slave_may_not_hold_is_refused_with_the_setting() -> None:
    async def main(_: object) -> None:
        big = StoreConfig(log_file_bytes=64 * 1024)
        master = await opened(MemoryDisk(), config=big)
        master.append(a_draft(bytes(50_000)))
        store = await slave(MemoryDisk(), config=replace(big, message_bytes_max=1000))
        with pytest.raises(CopyMismatch, match="maxMessageSize"):
            store.replica.copy().append(*next(stream(master, 0, 400)))
        smaller = await slave(MemoryDisk())
        with pytest.raises(CopyMismatch, match="mappedFileSizeCommitLog"):
            smaller.replica.copy().append(*next(stream(master, 0, 400)))

    simulate(main)


def test_a_full_disk_refuses_bytes_that_can_come_again() -> None:
    async def main(_: object) -> None:
        master = await filled(MemoryDisk())
        disk = FaultyDisk(1)
        store = await slave(disk)
        pieces = list(stream(master, 0, 700))
        copy = store.replica.copy()
        copy.append(*pieces[0])
        disk.fail("zero", 28, times=2)
        with pytest.raises(DiskFull):
            append_all(copy, pieces[1:])
        disk.fail("zero", times=0)
        copy = store.replica.copy()
        for piece in stream(master, store.log_end, 700):
            copy.append(*piece)
        assert everything(store) == everything(master)

    simulate(main)


def test_a_copy_accepts_no_messages_of_its_own() -> None:
    async def main(_: object) -> None:
        store = await slave(MemoryDisk())
        with pytest.raises(StoreError, match="go to the master"):
            store.append(a_draft())

    simulate(main)


def test_who_waits_for_messages_wakes_when_they_are_copied() -> None:
    async def main(_: object) -> None:
        master, store = await filled(MemoryDisk()), await slave(MemoryDisk())
        arrivals = store.arrivals("orders", 1)
        copy = store.replica.copy()
        for piece in stream(master, 0, 300):
            copy.append(*piece)
        assert await arrivals.reach(master.max_offset("orders", 1), Deadline.after(0))
        assert store.replica.appended.value == master.log_end

    simulate(main)


def test_with_synchronous_flush_readers_see_copies_when_they_are_on_the_disk() -> None:
    async def main(_: object) -> None:
        master = await filled(MemoryDisk())
        store = await slave(MemoryDisk(), config=replace(SMALL, flush="SYNC_FLUSH"))
        copy = store.replica.copy()
        for piece in stream(master, 0, 1 << 20):
            copy.append(*piece)
        assert store.readable_end == 0
        assert not store.max_offset("orders", 1)
        await store.sync()
        assert store.readable_end == master.log_end
        assert everything(store) == everything(master)

    simulate(main)


def test_the_recorded_stream_of_a_java_master_makes_its_log() -> None:
    async def main(_: object) -> None:
        config = StoreConfig(log_file_bytes=16 << 20)
        disk = MemoryDisk()
        store = await slave(disk, config=config)
        copy = store.replica.copy()
        data = gzip.decompress((GOLDEN / "master-to-slave.bin.gz").read_bytes())
        whole = bytearray()
        for frame in FrameDecoder().feed(data):
            copy.append(frame.offset, frame.data)
            whole += frame.data
        assert store.log_end == copy.end == len(whole)
        assert sum(len(found) for found in everything(store).values()) > 300
        await store.close()
        log = disk.read(f"{ROOT}/commitlog/{0:020d}") or b""
        assert log == bytes(whole) + bytes((16 << 20) - len(whole))

    simulate(main)


def test_bytes_behind_the_blank_end_of_a_file_are_copied_too() -> None:
    """A Java master that has recovered leaves old bytes there."""

    async def main(_: object) -> None:
        disk, copied = MemoryDisk(), MemoryDisk()
        master, store = await filled(disk), await slave(copied)
        segment = master._log.segments.at(0)
        marker = bytes(segment.buffer).rindex((-875286124).to_bytes(4, "big", signed=True))
        assert marker + 12 < len(segment.buffer)
        segment.buffer[-3:] = b"old"
        copy = store.replica.copy()
        for piece in stream(master, 0, 50):
            copy.append(*piece)
        await master.close()
        await store.close()
        assert log_files(copied) == log_files(disk)
        assert body_crc(b"") == 0

    simulate(main)
