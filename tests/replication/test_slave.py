"""A slave, as a raw master sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from sprocket.replication.frames import FRAME_BYTES_MAX, HEAD, ReportDecoder
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave import Slave
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened

PORT = 10912


class RawMaster:
    """Accepts slaves, sends them what a test says, and collects their reports."""

    def __init__(self) -> None:
        self.reports: list[list[int]] = []
        self.writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder, reports = ReportDecoder(), list[int]()
        self.reports.append(reports)
        self.writer = writer
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                reports += decoder.feed(data)
        writer.close()

    def send(self, offset: int, data: bytes = b"", *, size: int | None = None) -> None:
        assert self.writer is not None
        self.writer.write(HEAD.pack(offset, len(data) if size is None else size) + data)


async def records(count: int = 10) -> bytes:
    """The log of a master."""
    store = await opened(MemoryDisk())
    for number in range(count):
        store.append(a_draft(b"%d" % number))
    return bytes(store.replica.read(0, SMALL.log_file_bytes))


def play(
    test: Callable[[RawMaster, Store], Awaitable[None]],
    *,
    flush: str = "ASYNC_FLUSH",
    disk: MemoryDisk | None = None,
    compared: Callable[[], Awaitable[str | None]] | None = None,
) -> None:
    async def nothing() -> str | None:
        return None

    async def main(_: object) -> None:
        master = RawMaster()
        server = await asyncio.start_server(master.serve, "127.0.0.1", PORT)
        store = await Store.open(
            disk=disk or MemoryDisk(),
            clock=ManualClock(),
            root=ROOT,
            config=replace(SMALL, flush=flush),
            store_host=HOST,
            tag_codes=TAGS_ONLY,
            is_copy=True,
        )
        address = MasterAddress()
        address.learn("127.0.0.1:1", f"127.0.0.1:{PORT}")
        slave = Slave(
            store,
            address,
            rules=StreamRules(),
            is_flushing=flush == "SYNC_FLUSH",
            entropy=SeededEntropy(1),
            on_copied=lambda: None,
            compared=compared or nothing,
        )
        running = [asyncio.ensure_future(slave.run()), asyncio.ensure_future(store.run())]
        await asyncio.sleep(1)
        await test(master, store)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(1)  # the master's tasks end with their connections
        server.close()

    simulate(main)


def test_it_reports_its_end_after_what_it_copies_and_when_nothing_comes() -> None:
    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        assert master.reports == [[0]]
        master.send(0, log[:300])
        await asyncio.sleep(1)
        (reports,) = master.reports
        whole = reports[-1]
        assert 0 < whole == store.log_end <= 300
        master.send(300, log[300:])
        await asyncio.sleep(1)
        assert reports == [0, whole, len(log)]
        await asyncio.sleep(11)
        assert reports == [0, whole, len(log), len(log), len(log)]
        assert bodies(store) == [b"%d" % number for number in range(10)]

    play(test)


def test_with_synchronous_flush_it_reports_what_is_on_its_disk() -> None:
    disk = FaultyDisk(1)

    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        disk.sync_seconds = (3.0, 3.0)
        master.send(0, log)
        await asyncio.sleep(1)
        assert store.log_end == len(log)
        assert set(master.reports[0]) == {0}
        await asyncio.sleep(12)
        assert master.reports[0][-1] == len(log)

    play(test, flush="SYNC_FLUSH", disk=disk)


def test_it_comes_back_and_goes_on_at_its_last_whole_record() -> None:
    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        master.send(0, log[: len(log) - 20])
        await asyncio.sleep(1)
        assert master.writer is not None
        master.writer.transport.abort()
        await asyncio.sleep(3)
        assert master.reports[1][0] == store.log_end < len(log) - 20
        master.send(store.log_end, log[store.log_end :])
        await asyncio.sleep(1)
        assert store.log_end == len(log)

    play(test)


def test_a_silent_master_is_left() -> None:
    async def test(master: RawMaster, store: Store) -> None:
        await asyncio.sleep(19)
        assert len(master.reports) == 1
        await asyncio.sleep(5)
        assert len(master.reports) == 2

    play(test)


@pytest.mark.parametrize(
    ("offset", "size", "told"),
    [
        (5, None, "sends its log from 5 on"),
        (-1, None, "no frame of a master"),
        (0, FRAME_BYTES_MAX + 1, "no frame of a master"),
    ],
)
def test_what_is_no_continuation_is_refused_once_in_the_log_and_tried_again(
    offset: int, size: int | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        master.send(0, log)
        await asyncio.sleep(1)
        for _ in range(3):
            master.send(offset, log, size=size)
            await asyncio.sleep(20)
        assert len(master.reports) >= 3
        assert store.log_end == len(log)

    with caplog.at_level(logging.WARNING):
        play(test)
    found = [each.message for each in caplog.records if "nothing is copied" in each.message]
    assert any(told in each for each in found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("by", "told"), [(-100, "has messages that the master has not"), (100, "deleted there")]
)
def test_a_heartbeat_from_elsewhere_says_what_to_do(
    by: int, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        master.send(0, log)
        await asyncio.sleep(1)
        master.send(len(log) + by)
        await asyncio.sleep(3)
        assert len(master.reports) == 2

    with caplog.at_level(logging.WARNING):
        play(test)
    assert told in caplog.text


def test_a_log_that_differs_is_not_copied(caplog: pytest.LogCaptureFixture) -> None:
    async def differs() -> str | None:
        return "it has another message"

    async def test(master: RawMaster, store: Store) -> None:
        await asyncio.sleep(30)
        assert master.reports == []

    with caplog.at_level(logging.WARNING):
        play(test, compared=differs)
    assert caplog.text.count("it has another message") == 1


def test_a_full_disk_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk(1)

    async def test(master: RawMaster, store: Store) -> None:
        log = await records()
        disk.fail("zero", 28, times=2)
        master.send(0, log)
        await asyncio.sleep(3)
        assert store.log_end == 0
        master.send(0, log)
        await asyncio.sleep(1)
        assert store.log_end == len(log)

    with caplog.at_level(logging.WARNING):
        play(test, disk=disk)
    assert "nothing is copied" in caplog.text


def test_no_master_is_waited_for() -> None:
    async def main(_: object) -> None:
        store = await opened(MemoryDisk())

        async def nothing() -> str | None:
            return None

        slave = Slave(
            store,
            MasterAddress("127.0.0.1:9"),
            rules=StreamRules(),
            is_flushing=False,
            entropy=SeededEntropy(1),
            on_copied=lambda: None,
            compared=nothing,
        )
        running = asyncio.ensure_future(slave.run())
        await asyncio.sleep(100)
        assert not running.done()
        running.cancel()

    simulate(main)
