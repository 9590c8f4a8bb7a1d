"""A bit flipped in a field that no checksum covers makes no hole in a queue."""

from __future__ import annotations

import logging
import struct
from dataclasses import replace

import pytest

from sprocket.testing.disk import MemoryDisk
from tests.store.batches import CONFIG as BATCHES
from tests.store.batches import TOPIC, disk_with_topic, numbered, put
from tests.store.making import ROOT, SMALL, a_draft, bodies, messages, opened
from tests.support import run

COUNT = 24
OFFSET_AT, NUMBER_AT = 20, 12
#: Recovery removes queue files behind the place from which it replays; here all is in the first.
CONFIG = replace(SMALL, queue_file_bytes=800)


async def killed() -> tuple[MemoryDisk, list[int]]:
    """A store that was killed before its queues were synced, and where its records are."""
    disk = MemoryDisk()
    store = await opened(disk, config=CONFIG)
    places = [
        store.append(a_draft(b"%d" % number, queue_number=number % 2)).log_offset
        for number in range(COUNT)
    ]
    left = disk.after_kill()
    await store.close()
    return left, places


def flip(disk: MemoryDisk, log_offset: int, at: int, bit: int, kind: str) -> None:
    size = SMALL.log_file_bytes
    path = f"{ROOT}/commitlog/{log_offset // size * size:020d}"
    buffer = disk.map(path, size).buffer
    place = log_offset % size + at
    (value,) = struct.unpack_from(kind, buffer, place)
    struct.pack_into(kind, buffer, place, value ^ 1 << bit)


@pytest.mark.parametrize("has_entries", [True, False], ids=["entries", "no entries"])
@pytest.mark.parametrize("number", [0, 1, 9, COUNT - 2, COUNT - 1])
@pytest.mark.parametrize("bit", [4, 7, 33])
def test_a_flipped_queue_offset_is_mended(
    number: int, bit: int, has_entries: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk, places = await killed()
        flip(disk, places[number], OFFSET_AT, bit, ">q")
        if not has_entries:
            for queue in (0, 1):
                for name in disk.names(f"{ROOT}/consumequeue/orders/{queue}"):
                    disk.remove(f"{ROOT}/consumequeue/orders/{queue}/{name}")
        for _ in range(2):
            store = await opened(disk, config=CONFIG)
            for queue in (0, 1):
                assert bodies(store, number=queue) == [b"%d" % n for n in range(queue, COUNT, 2)]
                offsets = [message.queue_offset for message in messages(store, number=queue)]
                assert offsets == list(range(COUNT // 2))
            await store.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert caplog.text.count(": mended") == 1


@pytest.mark.parametrize("number", [0, 1, 9, COUNT - 1])
@pytest.mark.parametrize("bit", [0, 5, 20])
def test_a_flipped_queue_number_is_mended(
    number: int, bit: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk, places = await killed()
        flip(disk, places[number], NUMBER_AT, bit, ">i")
        store = await opened(disk, config=CONFIG)
        for queue in (0, 1):
            assert bodies(store, number=queue) == [b"%d" % n for n in range(queue, COUNT, 2)]
        assert store.queues() == {"orders": [0, 1]}
        await store.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert caplog.text.count(": mended") == 1


def test_a_topic_that_begins_at_0_again_is_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk, config=CONFIG)
        for number in range(COUNT):
            if number == 17:
                store.delete_topic("orders")
            store.append(a_draft(b"%d" % number))
        left = disk.after_kill()
        await store.close()
        left.remove(f"{ROOT}/config/deletedTopics.json")  # as Java's broker, which has none
        store = await opened(left, config=CONFIG)
        assert bodies(store) == [b"%d" % number for number in range(17, COUNT)]
        await store.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert ": mended" not in caplog.text


@pytest.mark.parametrize("has_units", [True, False], ids=["units", "no units"])
@pytest.mark.parametrize("number", [0, 1, 5, 10, 11])
@pytest.mark.parametrize("bit", [0, 3, 33])
def test_a_flipped_offset_of_a_batch_is_mended(number: int, bit: int, has_units: bool) -> None:
    async def check() -> None:
        disk = disk_with_topic()
        config = replace(BATCHES, batch_queue_file_bytes=40 * 46)
        store = await opened(disk, config=config)
        chunks = [[b"%d-%d" % (n, m) for m in range(1 + n % 3)] for n in range(12)]
        places = [put(store, *chunk).log_offset for chunk in chunks]
        disk = disk.after_kill()
        await store.close()
        flip(disk, places[number], OFFSET_AT, bit, ">q")
        if not has_units:
            folder = f"{ROOT}/batchconsumequeue/{TOPIC}/0"
            for name in disk.names(folder):
                disk.remove(f"{folder}/{name}")
        for _ in range(2):
            store = await opened(disk, config=config)
            assert numbered(store) == list(enumerate(body for each in chunks for body in each))
            await store.close()

    run(check())
