"""A master with epochs: what it sends, and what it confirms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from sprocket.replication.epoch_frames import (
    EpochFrame,
    EpochFrameDecoder,
    MasterHello,
    SlaveHello,
    encode_report,
)
from sprocket.replication.epochs import EpochList
from sprocket.testing.loop import simulate
from tests.replication.members import Leading, leading, replica
from tests.store.making import SMALL, a_draft, bodies


class RawMember:
    """A connection that sends what a test says and collects what arrives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._decoder = EpochFrameDecoder()
        self.frames: list[EpochFrame] = []
        self.is_closed = False

    @classmethod
    async def connected(cls, port: int, hello: SlaveHello, *reports: int) -> RawMember:
        member = cls(*await asyncio.open_connection("127.0.0.1", port))
        member.writer.write(hello.encode())
        await member.read()
        member.report(*reports)
        return member

    @property
    def hello(self) -> MasterHello | None:
        return self._decoder.hello

    def report(self, *offsets: int) -> None:
        self.writer.write(b"".join(map(encode_report, offsets)))

    async def read(self, seconds: float = 0.2) -> list[EpochFrame]:
        got: list[EpochFrame] = []
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


def play(test: Callable[[Leading], Awaitable[None]], *, in_sync: tuple[int, ...] = ()) -> None:
    """Runs a test with a master of epoch 3, whose log has epochs 1 and 2 besides."""

    async def main(_: object) -> None:
        one = await replica(1)
        for epoch in (1, 2):
            one.epochs.begin(epoch, 0, one.store.log_end)
            for number in range(20):
                one.store.append(a_draft(b"%d-%d" % (epoch, number)))
        async with leading(one, 3, in_sync=in_sync) as lead:
            await test(lead)
        await asyncio.sleep(1)

    simulate(main)


def test_a_slave_gets_the_epochs_and_then_the_log_those_of_one_epoch_in_a_frame() -> None:
    async def test(lead: Leading) -> None:
        one = lead.replica
        member = await RawMember.connected(one.port, SlaveHello(2))
        epochs = one.epochs.epochs
        assert member.hello == MasterHello(one.store.log_end, 3, epochs)
        assert [each.epoch for each in epochs.entries] == [1, 2, 3]
        assert not member.frames
        member.report(0)
        await member.read()
        assert member.log == one.log
        at = 0
        for frame in member.frames:
            assert frame.offset == at
            at += len(frame.data)
            entry = epochs.at(frame.offset)
            assert (frame.epoch, frame.epoch_start) == entry
            assert at <= epochs.end_of(EpochList([entry or (0, 0)]).entries[0], at)
        assert {frame.epoch for frame in member.frames if frame.data} == {1, 2}

    play(test)


def test_a_slave_without_a_log_gets_all_or_the_last_file_as_it_asks() -> None:
    async def test(lead: Leading) -> None:
        end = lead.replica.store.log_end
        for hello, start in (
            (SlaveHello(2), 0),
            (SlaveHello(3, from_last_file=True), end - end % SMALL.log_file_bytes),
        ):
            member = await RawMember.connected(lead.replica.port, hello, 0)
            await member.read()
            assert member.frames[0].offset == start

    play(test)


def test_what_the_in_sync_set_has_is_confirmed_and_told_soon() -> None:
    async def test(lead: Leading) -> None:
        one, end = lead.replica, lead.replica.store.log_end
        first = await RawMember.connected(one.port, SlaveHello(2), end)
        second = await RawMember.connected(one.port, SlaveHello(3), end)
        await asyncio.gather(first.read(), second.read())
        assert lead.replicated.value == one.confirmed.value == end
        one.store.append(a_draft(b"new"))
        await asyncio.gather(first.read(), second.read())
        now = one.store.log_end
        first.report(now)
        await asyncio.sleep(0.01)
        assert lead.replicated.value == end
        assert b"new" not in bodies(one.store)
        second.report(now)
        told = await first.read(0.02)
        assert lead.replicated.value == one.confirmed.value == now
        assert b"new" in bodies(one.store)
        assert [(each.offset, each.data, each.confirmed) for each in told] == [(now, b"", now)]

    play(test, in_sync=(2, 3))


def test_alone_it_confirms_what_it_appends() -> None:
    async def test(lead: Leading) -> None:
        store = lead.replica.store
        await asyncio.sleep(0)
        assert lead.replica.confirmed.value == store.log_end
        store.append(a_draft(b"new"))
        await asyncio.sleep(0.001)
        assert lead.replicated.value == store.log_end
        lead.set_in_sync(1, 2)
        store.append(a_draft(b"newer"))
        await asyncio.sleep(0.001)
        assert lead.replicated.value < store.log_end
        lead.set_in_sync(1, version=2)
        await asyncio.sleep(0.001)
        assert lead.replicated.value == store.log_end
        assert bodies(store)[-2:] == [b"new", b"newer"]

    play(test)


def test_a_learner_gets_the_log_and_does_not_count() -> None:
    async def test(lead: Leading) -> None:
        end = lead.replica.store.log_end
        learner = await RawMember.connected(lead.replica.port, SlaveHello(2, is_learner=True), 0)
        await learner.read()
        learner.report(end)
        await learner.read()
        assert learner.log == lead.replica.log
        assert not lead.copies.members
        assert lead.replicated.value == 0

    play(test, in_sync=(2,))


def test_a_member_that_connects_anew_has_one_connection() -> None:
    async def test(lead: Leading) -> None:
        end = lead.replica.store.log_end
        old = await RawMember.connected(lead.replica.port, SlaveHello(2), end)
        await old.read()
        new = await RawMember.connected(lead.replica.port, SlaveHello(2), 0)
        await asyncio.gather(old.read(), new.read())
        assert old.is_closed
        assert [link.member for link in lead.master.links.values()] == [2]
        assert lead.copies.members[2].is_connected

    play(test, in_sync=(2,))


@pytest.mark.parametrize("number", [1])
def test_a_slave_with_the_masters_own_number_is_refused(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(lead: Leading) -> None:
        member = await RawMember.connected(lead.replica.port, SlaveHello(number), 0)
        await member.read()
        assert member.is_closed

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "this broker's own number" in caplog.text
