"""A master, as raw connections see it."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sprocket.base.watermark import Watermark
from sprocket.replication.copies import Copies, CopyRules
from sprocket.replication.frames import Frame, FrameDecoder
from sprocket.replication.master import Master
from sprocket.replication.master_forms import PlainForm
from sprocket.replication.rules import StreamRules
from sprocket.replication.stream_start import FreshStart
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.store.making import HOST, ROOT, SMALL, a_draft, opened

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "ha"
PORT = 10912


class RawSlave:
    """A connection that sends reports and collects frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._decoder = FrameDecoder()
        self.writer = writer
        self.frames: list[Frame] = []
        self.is_closed = False

    @classmethod
    async def connected(cls, *reports: int) -> RawSlave:
        slave = cls(*await asyncio.open_connection("127.0.0.1", PORT))
        slave.report(*reports)
        return slave

    def report(self, *offsets: int) -> None:
        self.writer.write(b"".join(struct.pack(">q", offset) for offset in offsets))

    async def read(self, seconds: float = 1.0) -> list[Frame]:
        """What arrives within some seconds."""
        got: list[Frame] = []
        try:
            async with asyncio.timeout(seconds):
                while data := await self._reader.read(1 << 16):
                    got += self._decoder.feed(data)
                self.is_closed = True
        except TimeoutError:
            pass
        except ConnectionError:
            self.is_closed = True
        self.frames += got
        return got

    @property
    def log(self) -> bytes:
        return b"".join(frame.data for frame in self.frames)


@dataclass
class Served:
    store: Store
    master: Master
    copies: Copies
    replicated: Watermark
    asked: list[int]

    def know(self, registered: dict[str, int] | None) -> None:
        self.copies.know(registered, {link.host for link in self.master.links.values()})
        self.master.recount()


@asynccontextmanager
async def serving(
    rules: StreamRules | None = None, copy_rules: CopyRules | None = None, messages: int = 40
) -> AsyncIterator[Served]:
    store = await opened(MemoryDisk())
    for number in range(messages):
        store.append(a_draft(b"%d" % number + bytes(100)))
    copies, replicated, asked = Copies(copy_rules or CopyRules(2, 2)), Watermark(), [0]

    def ask() -> None:
        asked[0] += 1

    master = Master(
        store,
        PlainForm(copies),
        replicated=replicated,
        readable=Watermark(),
        sendable=store.replica.appended,
        host="127.0.0.1",
        port=PORT,
        rules=rules or StreamRules(batch_bytes=500),
        on_stranger=ask,
    )
    async with master:
        yield Served(store, master, copies, replicated, asked)


def play(test: Callable[[], Awaitable[None]]) -> None:
    async def main(_: object) -> None:
        await test()

    simulate(main)


def whole_log(store: Store, start: int = 0) -> bytes:
    found = b""
    while piece := bytes(store.replica.read(start + len(found), 1 << 20)):
        found += piece
    return found


def test_a_slave_gets_the_log_in_frames_that_follow_each_other() -> None:
    async def test() -> None:
        async with serving() as served:
            slave = await RawSlave.connected(SMALL.log_file_bytes)
            await slave.read()
            assert slave.log == whole_log(served.store, SMALL.log_file_bytes)
            at = SMALL.log_file_bytes
            for frame in slave.frames:
                assert frame.offset == at
                assert len(frame.data) <= 500
                at += len(frame.data)
            served.store.append(a_draft(b"new"))
            (frame,) = await slave.read()
            assert frame.offset == at
            assert frame.offset + len(frame.data) == served.store.log_end

    play(test)


def test_a_slave_without_a_log_begins_with_the_last_file_or_as_set() -> None:
    async def test() -> None:
        async with serving() as served:
            slave = await RawSlave.connected(0)
            await slave.read()
            end = served.store.log_end
            assert slave.frames[0].offset == end - end % SMALL.log_file_bytes
        async with serving(StreamRules(fresh=FreshStart.parse("first"))) as served:
            slave = await RawSlave.connected(0)
            await slave.read()
            assert slave.log == whole_log(served.store)

    play(test)


def test_a_connection_without_news_gets_heartbeats_and_closes_when_it_is_silent() -> None:
    async def test() -> None:
        async with serving(messages=0) as served:
            slave = await RawSlave.connected(0)
            assert await slave.read(4.9) == []
            assert await slave.read(1.0) == [Frame(0, b"")]
            slave.report(0)
            await slave.read(15.0)
            assert not slave.is_closed
            await slave.read(10.0)
            assert slave.is_closed
            assert slave.frames == [Frame(0, b"")] * len(slave.frames)
            assert len(slave.frames) in (4, 5)
            assert not served.master.links

    play(test)


@pytest.mark.parametrize(
    ("report", "offset", "told"),
    [(1, 2048, "deleted"), (10**6, None, "ahead"), (2**63 - 1, None, "ahead")],
)
def test_a_slave_that_cannot_go_on_is_told_where_the_log_is_and_an_operator_once(
    report: int, offset: int | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving() as served:
            served.store._log.remove_first()
            for _ in range(3):
                slave = await RawSlave.connected(report)
                frames = await slave.read()
                assert frames == [Frame(served.store.log_end if offset is None else offset, b"")]
                assert slave.is_closed
            assert served.replicated.value < served.store.log_start

    with caplog.at_level(logging.WARNING):
        play(test)
    warnings = [each.message for each in caplog.records if "slave" in each.message]
    assert len(warnings) == 1
    assert told in warnings[0]


@pytest.mark.parametrize("report", [10**6, -1])
def test_a_later_report_beyond_the_log_counts_for_nothing_and_ends_the_link(report: int) -> None:
    async def test() -> None:
        async with serving() as served:
            slave = await RawSlave.connected(2048)
            await slave.read()
            slave.report(report)
            await slave.read()
            assert slave.is_closed
            assert served.replicated.value <= 2048

    play(test)


def test_what_enough_slaves_report_is_replicated() -> None:
    async def test() -> None:
        async with serving(copy_rules=CopyRules(3)) as served:
            served.know({"127.0.0.1": 2})
            slaves = [await RawSlave.connected(2048) for _ in range(2)]
            await slaves[0].read()
            assert served.replicated.value == 2048
            end = served.store.log_end
            slaves[0].report(end)
            await slaves[0].read()
            assert served.replicated.value == 2048
            slaves[1].report(end - 100)
            await slaves[1].read()
            assert served.replicated.value == end - 100
            slaves[0].writer.transport.abort()
            await slaves[1].read()
            assert served.copies.offsets() == [end - 100]

    play(test)


def test_who_is_registered_nowhere_gets_the_log_and_counts_for_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with serving() as served:
            served.know({"10.9.9.9": 1})
            assert served.asked == [0]
            stranger = await RawSlave.connected(2048)
            await stranger.read()
            assert served.asked == [1]
            served.know({"10.9.9.9": 1})
            stranger.report(served.store.log_end)
            await stranger.read()
            assert stranger.log
            assert served.replicated.value == 0
            served.know({"127.0.0.1": 1})
            assert served.replicated.value == served.store.log_end

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "no slave of this broker is registered at this address" in caplog.text


def test_strangers_cannot_keep_a_slave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sprocket.replication.master._LINKS_MAX", 3)

    async def test() -> None:
        async with serving() as served:
            served.know({"10.9.9.9": 1})
            strangers = [await RawSlave.connected(2048) for _ in range(4)]
            await strangers[3].read()
            assert strangers[3].is_closed
            served.copies.registered = {"127.0.0.1": 1}
            for link in served.master.links.values():
                link.host = "10.1.1.1"
            slave = await RawSlave.connected(2048)
            await slave.read()
            assert slave.log == whole_log(served.store, 2048)
            await strangers[0].read()
            assert strangers[0].is_closed

    play(test)


def test_a_slave_that_does_not_read_costs_a_bounded_amount() -> None:
    async def test() -> None:
        async with serving(StreamRules(batch_bytes=4096), messages=0) as served:
            slave = await RawSlave.connected(0)
            slave.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(1)
            for _ in range(2000):
                served.store.append(a_draft(bytes(1000)))
                await asyncio.sleep(0.001)
            (link,) = served.master.links.values()
            assert link.sent < 100_000 < served.store.log_end

    play(test)


def test_a_limit_of_bytes_a_second_holds() -> None:
    async def test() -> None:
        async with serving(StreamRules(batch_bytes=500, bytes_per_second=1000)) as served:
            slave = await RawSlave.connected(2048)
            await slave.read(3.0)
            assert 2500 <= len(slave.log) <= 4500
            await slave.read(10.0)
            assert slave.log == whole_log(served.store, 2048)

    play(test)


def test_the_recorded_log_of_a_java_master_is_sent_as_java_sent_it() -> None:
    """Its slave takes a frame whose offset is its own end, of 32 KiB at most."""
    recorded = gzip.decompress((GOLDEN / "master-to-slave.bin.gz").read_bytes())
    log = b"".join(frame.data for frame in FrameDecoder().feed(recorded))

    async def test() -> None:
        store = await Store.open(
            disk=MemoryDisk(),
            clock=ManualClock(),
            root=ROOT,
            config=StoreConfig(log_file_bytes=16 << 20),
            store_host=HOST,
            tag_codes=TAGS_ONLY,
            is_copy=True,
        )
        store.replica.copy().append(0, log)
        async with Master(
            store,
            PlainForm(Copies(CopyRules(2))),
            replicated=Watermark(),
            readable=Watermark(),
            sendable=store.replica.appended,
            host="127.0.0.1",
            port=PORT,
            rules=StreamRules(batch_bytes=32 * 1024),
            on_stranger=lambda: None,
        ):
            slave = await RawSlave.connected(0)
            await slave.read()
        end = 0
        for frame in slave.frames:
            assert frame.offset == end
            assert len(frame.data) <= 32 * 1024
            end += len(frame.data)
        assert slave.log == log

    play(test)


def test_files_that_are_deleted_while_a_slave_lags_end_its_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with serving(StreamRules(batch_bytes=100, bytes_per_second=1000)) as served:
            slave = await RawSlave.connected(0)
            slave = await RawSlave.connected(1000)
            await slave.read(0.3)
            served.store._log.remove_first()
            served.store._log.remove_first()
            await slave.read()
            assert slave.is_closed
            assert slave.frames[-1] == Frame(served.store.log_start, b"")

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "deleted before they could be sent" in caplog.text


def test_a_crowd_of_strangers_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with serving():
            crowd = []
            for _ in range(500):
                with contextlib.suppress(ConnectionError):
                    crowd.append(await RawSlave.connected(0))
            await asyncio.sleep(30)

    with caplog.at_level(logging.WARNING):
        play(test)
    said = [each.message for each in caplog.records if "is refused" in each.message]
    assert 0 < len(said) <= 20
    assert len(caplog.records) < 100
