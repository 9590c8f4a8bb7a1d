"""Queues whose files are gone are missed at the next start."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest

from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import ROOT, a_draft, bodies, opened
from tests.store.writing.test_flush import running
from tests.support import run

FILE = f"{ROOT}/config/queueEnds.json"


def remove_queue(disk: MemoryDisk, number: int) -> None:
    folder = f"{ROOT}/consumequeue/orders/{number}"
    for name in disk.names(folder):
        disk.remove(f"{folder}/{name}")


def test_one_queue_of_several_that_is_gone_is_built_anew(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(30):
            store.append(a_draft(b"%d" % n, queue_number=n % 2))
        await store.close()
        remove_queue(disk, 1)
        store = await opened(disk)
        assert bodies(store, number=1) == [b"%d" % n for n in range(1, 30, 2)]
        assert store.append(a_draft(queue_number=1)).queue_offset == 15

    with caplog.at_level(logging.WARNING):
        run(check())
    assert "queue 1 of orders lacks files, and had messages up to 15" in caplog.text


@pytest.mark.parametrize("count", [5, 8])  # eight entries fill a file
def test_a_queue_whose_messages_have_expired_goes_on_where_it_ended(count: int) -> None:
    """Else the next message would get an offset that consumers have behind them."""

    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for _ in range(count):
            store.append(a_draft(queue_number=1))
        for _ in range(60):
            store.append(a_draft(b"x" * 100))
        await store.sync()
        store.disk_space.rules = store.disk_space.rules._replace(files_max=10, bytes_max=1)
        await store.disk_space.remove_old()
        await store.close()
        remove_queue(disk, 1)
        for _ in range(2):
            store = await opened(disk)
            assert store.min_offset("orders", 1) == store.max_offset("orders", 1) == count
            await store.close()
        store = await opened(disk)
        assert store.append(a_draft(b"next", queue_number=1)).queue_offset == count
        assert bodies(store, number=1) == [b"next"]

    run(check())


def test_it_is_noted_while_the_store_is_open_too() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(1)
        async with running(disk) as store:
            for n in range(30):
                store.append(a_draft(b"%d" % n, queue_number=n % 2))
            await asyncio.sleep(61)
            store.append(a_draft(b"later", queue_number=1))
            later = disk.after_kill()
            remove_queue(later, 1)
            again = await opened(later)
            assert bodies(again, number=1) == [*(b"%d" % n for n in range(1, 30, 2)), b"later"]

    simulate(check)


def test_a_deleted_topic_is_not_missed() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        store.append(a_draft(b"old"))
        await store.close()
        store = await opened(disk)
        store.delete_topic("orders")
        again = await opened(disk.after_kill())
        assert again.queues() == {}

    run(check())


def test_a_log_that_lost_its_end_may_have_shorter_queues(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        places = [store.append(a_draft(b"%d" % n)) for n in range(3)]
        await store.close()
        disk.map(f"{ROOT}/commitlog/{0:020d}", 2048).buffer[places[2].log_offset + 88] ^= 1
        again = await opened(disk)
        assert bodies(again) == [b"0", b"1"]

    with caplog.at_level(logging.ERROR):
        run(check())
    assert "built anew" not in caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"queueEnds":[]}', b'{"queueEnds":{"a":{"x":1}}}']
)
def test_a_broken_file_says_nothing_and_is_written_anew(content: bytes) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        store.append(a_draft(b"0"))
        await store.close()
        before = disk.read(FILE)
        disk.remove(f"{FILE}.bak")
        disk.replace(FILE, content, backup=False)
        store = await opened(disk)
        assert bodies(store) == [b"0"]
        await store.close()
        assert disk.read(FILE) == before

    run(check())


def test_a_disk_that_refuses_it_stops_nothing() -> None:
    async def check() -> None:
        disk = FaultyDisk(1)
        store = await opened(disk)
        store.append(a_draft(b"0"))
        disk.fail("replace", errno.ENOSPC)
        await store.close()
        assert bodies(await opened(disk)) == [b"0"]

    run(check())
