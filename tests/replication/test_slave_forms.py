"""A slave with epochs: whom it follows, what it copies, and what its readers see."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.errors import ConnectionLost
from sprocket.replication.epoch_frames import MasterHello, SlaveHello
from sprocket.replication.epochs import EpochList
from sprocket.replication.master_link import StreamEnd
from sprocket.replication.slave_forms import LogsDiffer, SlaveMember
from sprocket.store.store import Store
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.replication.members import Replica, following, leading, replica
from tests.store.making import a_draft, bodies


def play(test: Callable[[], Awaitable[None]]) -> None:
    async def main(_: object) -> None:
        await test()
        await asyncio.sleep(5)

    simulate(main)


def fill(one: Replica, text: str, count: int = 20) -> None:
    for number in range(count):
        one.store.append(a_draft(f"{text}-{number}".encode()))


async def a_master() -> Replica:
    one = await replica(1)
    one.epochs.begin(1, 0, 0)
    fill(one, "first")
    return one


def test_logs_and_epochs_become_the_masters() -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with leading(one, 3, in_sync=(2,)) as lead, following(two, one.port):
            await asyncio.sleep(1)
            assert two.log == one.log
            fill(one, "second")
            await asyncio.sleep(1)
            assert two.log == one.log
            assert (
                two.epochs.epochs
                == one.epochs.epochs
                == EpochList([(1, 0), one.epochs.epochs.last or (0, 0)])
            )
            assert lead.replicated.value == one.store.log_end
            assert len(bodies(two.store)) == 40

    play(test)


def test_readers_of_a_slave_see_what_is_confirmed_and_soon() -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with leading(one, 3, in_sync=(2, 3)) as lead, following(two, one.port):
            await asyncio.sleep(1)
            assert two.log == one.log
            assert not bodies(two.store)
            assert two.confirmed.value == 0
            lead.set_in_sync(1, 2)
            await asyncio.sleep(0.02)
            assert len(bodies(two.store)) == 20
            one.store.append(a_draft(b"new"))
            await asyncio.sleep(0.03)
            assert bodies(two.store)[-1] == b"new"

    play(test)


def test_a_log_that_has_more_than_the_master_must_be_cut() -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with leading(one, 2), following(two, one.port):
            await asyncio.sleep(1)
        common = one.store.log_end
        assert two.store.log_end == common
        fill(one, "never confirmed", 3)
        two.store.replica.copy().append(common, one.log[common:])
        three = await replica(3)
        three.epochs.begin(1, 0, 0)
        fill(three, "first")
        async with leading(three, 4), following(two, three.port) as follower:
            with pytest.raises(LogsDiffer) as error:
                await asyncio.wait_for(follower.task, 5)
        assert (error.value.cut_at, error.value.end) == (common, one.store.log_end)

    play(test)


def test_a_master_of_an_old_epoch_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        least = 4
        async with leading(one, 3), following(two, one.port, epoch_min=lambda: least):
            await asyncio.sleep(1)
            assert not two.store.log_end
            least = 3
            await asyncio.sleep(2)
            assert two.log == one.log
        three = await replica(3)
        async with leading(three, 2), following(two, three.port):
            await asyncio.sleep(2)
            assert two.log == one.log

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "is the master of epoch 3, and epoch 4 has begun" in caplog.text
    assert "is the master of epoch 2, and epoch 3 has begun" in caplog.text


def test_logs_without_a_common_epoch_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with leading(one, 3), following(two, one.port):
            await asyncio.sleep(1)
        other = await replica(4)
        fill(other, "other")
        other.epochs.add(8, 100)
        async with leading(other, 9), following(two, other.port) as follower:
            await asyncio.sleep(3)
            assert not follower.task.done()
        assert two.log == one.log

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "no part of this log" in caplog.text


def test_what_nobody_had_copied_when_the_next_master_began_is_cut() -> None:
    async def test() -> None:
        one = await a_master()
        other = await replica(4)
        async with leading(other, 9), following(one, other.port) as follower:
            with pytest.raises(LogsDiffer) as error:
                await asyncio.wait_for(follower.task, 5)
        assert error.value.cut_at == 0

    play(test)


def test_a_slave_without_epochs_continues_the_log_it_has() -> None:
    """A master and a slave become a group with the logs that they have."""

    async def test() -> None:
        one = await replica(1)
        fill(one, "plain")
        two = await replica(2, is_copy=True)
        two.store.replica.copy().append(0, one.log[: one.store.log_end // 2])
        assert 0 < two.store.log_end < one.store.log_end
        async with leading(one, 1), following(two, one.port):
            await asyncio.sleep(1)
        assert two.log == one.log
        assert two.epochs.epochs == EpochList([(1, 0)])

    play(test)


def test_an_epoch_is_on_the_disk_before_its_first_record_counts() -> None:
    async def test() -> None:
        one, disk = await a_master(), MemoryDisk()
        two = await replica(2, disk, is_copy=True)
        seen: list[tuple[int, bytes | None]] = []
        right = disk.replace

        def replace(path: str, content: bytes, *, backup: bool = True) -> None:
            if "epoch" in path and not path.endswith(".bak"):
                seen.append((two.store.log_end, content))
            right(path, content, backup=backup)

        disk.replace = replace  # type: ignore[method-assign]
        async with leading(one, 3), following(two, one.port):
            fill(one, "second")
            await asyncio.sleep(1)
        starts = [entry.start for entry in one.epochs.epochs.entries]
        assert [end for end, _ in seen] == starts

    play(test)


def test_it_says_how_each_connection_ended_and_when_it_last_heard_its_master() -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with following(two, one.port) as follower:
            assert follower.slave.heard_at is None
            await asyncio.sleep(0.05)
            assert follower.ends == [StreamEnd.REFUSED]
            async with leading(one, 3):
                await asyncio.sleep(10)
                time = asyncio.get_running_loop().time()
                assert follower.slave.heard_at is not None
                assert time - follower.slave.heard_at <= 0.3
                follower.ends.clear()
            await asyncio.sleep(0.01)
            assert follower.ends[0] in (StreamEnd.CLOSED, StreamEnd.RESET)

    play(test)


def test_another_master_or_epoch_is_tried_at_once() -> None:
    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with following(two, 9) as follower:
            await asyncio.sleep(60)
            async with leading(one, 3):
                follower.address.learn("127.0.0.1:2", f"127.0.0.1:{one.port}")
                await asyncio.sleep(0.05)
                assert two.log == one.log
                follower.ends.clear()
                follower.address.renew()
                await asyncio.sleep(0.05)
                assert follower.ends == [StreamEnd.LEFT]
                assert follower.slave.is_connected

    play(test)


def test_a_master_of_rocketmqs_that_leaves_its_epoch_out_is_followed_from_where_it_begins() -> None:
    """Its list keeps the epoch before if both begin at the same offset, and no message is between.
    So what it has behind that place may be of either."""

    async def test() -> None:
        one, two = await a_master(), await replica(2, is_copy=True)
        async with leading(one, 2), following(two, one.port):
            fill(one, "second")
            await asyncio.sleep(1)
        start = one.epochs.epochs.entries[-1].start
        hello = MasterHello(one.store.log_end + 500, 2, one.epochs.epochs)

        def member(store: Store, *, may_be_rocketmqs: bool) -> SlaveMember:
            return SlaveMember(
                store,
                hello=SlaveHello(2),
                epochs=two.epochs,
                epoch_min=lambda: 3,
                confirmed=two.confirmed,
                may_be_rocketmqs=may_be_rocketmqs,
            )

        def refusals(slave: SlaveMember) -> int:
            for count in range(10):
                try:
                    slave.compare(hello)
                except ConnectionLost:
                    continue
                return count
            return 10

        assert refusals(member(two.store, may_be_rocketmqs=False)) == 10
        with pytest.raises(LogsDiffer) as error:
            refusals(member(two.store, may_be_rocketmqs=True))
        assert error.value.cut_at == start
        await two.store.close()
        three = await replica(2, two.disk.after_kill(), is_copy=True, cut_at=start)
        two.epochs.load(start, start)
        slave = member(three.store, may_be_rocketmqs=True)
        assert 0 < refusals(slave) < 10
        three.store.replica.copy().append(start, one.log[start:])
        slave.compare(hello)  # it goes on where it was

    play(test)
