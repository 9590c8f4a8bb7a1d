"""Messages for a time of the sender's choice through a broker's door: never early, once, none lost,
whatever happened to the process, the power, the files and the clock."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest

from sprocket.message.ids import parse_offset_id
from sprocket.protocol.requests.transaction import COMMIT, EndTransaction
from sprocket.store.state.snapshot import decode_state
from sprocket.testing.clock import EPOCH_MS, LoopClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
from sprocket.testing.loop import simulate
from tests.broker.parts import ROOT, Asker, new_disk
from tests.delay.timing import send_timed, timing


def faulty_disk(seed: int = 1) -> FaultyDisk:
    disk = FaultyDisk(seed)
    disk.make_directory(ROOT)
    return disk


async def send_many(
    asker: Asker, count: int, *, spread_ms: int, first_ms: int = 1000
) -> set[bytes]:
    sends = [
        asker.send("T", b"%d" % n, TIMER_DELAY_MS=str(first_ms + n * spread_ms // count))
        for n in range(count)
    ]
    await asyncio.gather(*sends)
    return {b"%d" % n for n in range(count)}


async def arrivals(asker: Asker, count: int) -> list[tuple[int, bytes]]:
    """When each of so many messages came, ms since the loop's begin, and what it was."""
    loop = asyncio.get_running_loop()
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        pulled = await asker.pull("T", len(found), hold_ms=20_000)
        found += [(int(loop.time() * 1000), message.body) for message in pulled.messages]
    return found


@pytest.mark.parametrize("slot_ms", [1000, 100])
def test_each_comes_at_its_own_millisecond_in_order_of_time(slot_ms: int) -> None:
    async def main() -> None:
        async with timing(new_disk(), timer_slot_ms=slot_ms) as asker:
            wishes = [(2500, b"d"), (1000, b"b"), (1001, b"c"), (7, b"a"), (4000, b"e")]
            for due_ms, body in wishes:
                await asker.send("T", body, TIMER_DELIVER_MS=str(EPOCH_MS + due_ms))
            came = await arrivals(asker, 5)
            assert [body for _, body in came] == [b"a", b"b", b"c", b"d", b"e"]
            for (came_ms, _), due_ms in zip(came, sorted(due for due, _ in wishes), strict=True):
                assert due_ms <= came_ms <= due_ms + 8

    simulate(lambda network: main())


def test_seconds_count_before_milliseconds_and_those_before_a_time() -> None:
    async def main() -> None:
        async with timing(new_disk()) as asker:
            far = str(EPOCH_MS + 60_000)
            await asker.send("T", b"ms", TIMER_DELAY_MS="3000", TIMER_DELIVER_MS=far)
            await asker.send("T", b"s", TIMER_DELAY_SEC="2", TIMER_DELAY_MS="9000")
            came = await arrivals(asker, 2)
            assert [(at // 100, body) for at, body in came] == [(20, b"s"), (30, b"ms")]

    simulate(lambda network: main())


def test_what_comes_keeps_its_properties_and_says_when_it_went_in_and_out() -> None:
    async def main() -> None:
        async with timing(new_disk()) as asker:
            await asker.send("T", b"x", queue=0, TIMER_DELAY_SEC="2", TAGS="a", KEYS="k", own="1")
            pulled = await asker.pull("T", hold_ms=10_000, tags="a")
            (message,) = pulled.messages
            kept = message.properties
            assert (kept["TAGS"], kept["KEYS"], kept["own"]) == ("a", "k", "1")
            assert kept["TIMER_OUT_MS"] == str(EPOCH_MS + 1000)
            assert int(kept["TIMER_DEQUEUE_MS"]) >= EPOCH_MS + 2000
            assert "REAL_TOPIC" not in kept
            assert "REAL_QID" not in kept

    simulate(lambda network: main())


@pytest.mark.parametrize("wish", [
    ("TIMER_DELAY_SEC", "0"), ("TIMER_DELAY_MS", "-5"),
    ("TIMER_DELIVER_MS", "1"), ("TIMER_DELAY_SEC", "-9"),
])  # fmt: skip
def test_a_time_that_has_passed_is_now(wish: tuple[str, str]) -> None:
    async def main() -> None:
        async with timing(new_disk()) as asker:
            await asker.send("T", b"x", **dict([wish]))
            assert await asker.bodies("T") == [b"x"]

    simulate(lambda network: main())


@pytest.mark.parametrize("wish", [("TIMER_DELAY_SEC", "259201"), ("TIMER_DELIVER_MS", "soon"),
    ("TIMER_DELAY_MS", str(2**63 - 1)), ("TIMER_DELAY_SEC", "9" * 40)])  # fmt: skip
def test_a_time_too_far_away_or_none_at_all_is_refused_with_the_limit(
    wish: tuple[str, str],
) -> None:
    async def main() -> None:
        async with timing(new_disk()) as asker:
            reply = await send_timed(asker, b"x", **dict([wish]))
            assert (reply.code, "259200000ms" in (reply.remark or "")) == (13, True)
            assert await asker.max_offset("rmq_sys_wheel_timer") == 0

    simulate(lambda network: main())


def test_a_delay_level_counts_before_a_time() -> None:
    async def main() -> None:
        async with timing(new_disk()) as asker:
            await asker.send("T", b"x", DELAY="1", TIMER_DELAY_SEC="100")
            ((came_ms, _),) = await arrivals(asker, 1)
            assert 1000 <= came_ms < 1100

    simulate(lambda network: main())


def test_years_ahead_it_is_stored_anew_on_the_way_and_comes_on_the_day() -> None:
    async def main() -> None:
        clock = LoopClock()
        disk = new_disk()
        year_ms = 366 * 86_400_000
        far = {"timer_delay_seconds_max": 4 * 366 * 86_400, "timer_roll_slots": 86_400}
        async with timing(disk, clock, **far) as asker:
            await asker.send("T", b"x", TIMER_DELIVER_MS=str(EPOCH_MS + year_ms), KEYS="k")
            for _ in range(16):
                clock.skew_ms += 25 * 86_400_000
                await asyncio.sleep(2)
                if clock.now_ms() < EPOCH_MS + year_ms:
                    assert await asker.bodies("T") == []
            pulled = await asker.pull("T")
            (message,) = pulled.messages
            assert int(message.properties["TIMER_ROLL_TIMES"]) >= 10
            assert int(message.properties["TIMER_DEQUEUE_MS"]) >= EPOCH_MS + year_ms
            assert await asker.max_offset("T") == 1

    simulate(lambda network: main())


def test_a_stop_in_the_middle_of_a_second_delivers_nothing_twice() -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk) as asker:
            sent = await send_many(asker, 100, spread_ms=4000)
            await asyncio.sleep(2.5)
            some = await asker.bodies("T")
            assert 0 < len(some) < 100
        async with timing(disk) as asker:
            await asyncio.sleep(10)
            bodies = await asker.bodies("T")
            assert (len(bodies), set(bodies)) == (100, sent)

    simulate(lambda network: main())


@pytest.mark.parametrize("after_ms", [0, 300, 999, 1700, 2500, 3900, 6000])
def test_after_a_kill_each_comes_once(after_ms: int) -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk) as asker:
            sent = await send_many(asker, 200, spread_ms=4000)
            await asyncio.sleep(after_ms / 1000)
            left = disk.after_kill()
        async with timing(left) as asker:
            await asyncio.sleep(10)
            bodies = await asker.bodies("T")
            assert (len(bodies), set(bodies)) == (200, sent)

    simulate(lambda network: main())


@pytest.mark.parametrize("seed", range(6))
def test_after_a_loss_of_power_what_was_acknowledged_comes_once(seed: int) -> None:
    async def main() -> None:
        disk = faulty_disk(seed)
        async with timing(disk, flush="SYNC_FLUSH") as asker:
            sent = await send_many(asker, 200, spread_ms=4000)
            await asyncio.sleep(0.7 * seed)
            left = disk.after_power_loss()
        async with timing(left, flush="SYNC_FLUSH") as asker:
            await asyncio.sleep(10)
            bodies = await asker.bodies("T")
            assert (len(bodies), set(bodies)) == (200, sent)

    simulate(lambda network: main())


@pytest.mark.parametrize("gone", [
    ("timerwheel",),
    ("timerlog",),
    ("timerwheel", "timerlog"),
    ("timerwheel", "timerlog", "config/timercheck", "config/timermetrics"),
])  # fmt: skip
def test_files_that_are_gone_are_made_anew_from_the_log(gone: tuple[str, ...]) -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk, timer_roll_slots=3) as asker:
            sent = await send_many(asker, 100, spread_ms=8000)
            await asyncio.sleep(3.2)
        for name in gone:
            for path in [f"{ROOT}/{name}/{file}" for file in disk.names(f"{ROOT}/{name}")]:
                disk.remove(path)
            disk.remove(f"{ROOT}/{name}")
        async with timing(disk, timer_roll_slots=3) as asker:
            await asyncio.sleep(20)
            bodies = await asker.bodies("T")
            assert (len(bodies), set(bodies)) == (100, sent)

    simulate(lambda network: main())


@pytest.mark.parametrize("days", [0.01, 3, 13, 40])
def test_what_became_due_while_the_broker_was_down_comes_at_the_start_once(days: float) -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk) as asker:
            sent = await send_many(asker, 30, spread_ms=60_000)
            await asyncio.sleep(0.5)
        clock = LoopClock(int(days * 86_400_000))
        async with timing(disk, clock) as asker:
            await asker.send("T", b"new", TIMER_DELAY_MS="900")
            await asyncio.sleep(3)
            bodies = await asker.bodies("T")
            assert sorted(bodies) == sorted([*sent, b"new"])

    simulate(lambda network: main())


@pytest.mark.parametrize("jump_ms", [-7_200_000, -1500, 700, 3_600_000])
def test_a_clock_that_jumps_makes_nothing_early_and_nothing_twice(jump_ms: int) -> None:
    async def main() -> None:
        clock = LoopClock()
        async with timing(new_disk(), clock) as asker:
            await asker.send("T", b"before", TIMER_DELIVER_MS=str(EPOCH_MS + 5_000))
            await asyncio.sleep(2)
            clock.skew_ms += jump_ms
            due_ms = clock.now_ms() + 4_000
            await asker.send("T", b"after", TIMER_DELIVER_MS=str(due_ms))
            await asyncio.sleep(3.9)
            bodies = await asker.bodies("T")
            assert b"after" not in bodies
            assert (b"before" in bodies) == (clock.now_ms() >= EPOCH_MS + 5_000)
            await asyncio.sleep(0.2)
            assert b"after" in await asker.bodies("T")
            clock.skew_ms = max(0, jump_ms)
            await asyncio.sleep(10)
            assert sorted(await asker.bodies("T")) == [b"after", b"before"]

    simulate(lambda network: main())


def test_what_the_disk_has_no_room_for_comes_once_there_is_some() -> None:
    class FullDisk(MemoryDisk):
        fullness = 0.1

        def usage(self, path: str) -> float:
            return self.fullness

    async def main() -> None:
        disk = FullDisk()
        disk.make_directory(ROOT)
        async with timing(disk) as asker:
            sent = await send_many(asker, 50, spread_ms=10_000, first_ms=11_000)
            disk.fullness = 0.99
            await asyncio.sleep(30)
            assert len(await asker.bodies("T")) < 50
            disk.fullness = 0.1
            await asyncio.sleep(15)
            bodies = await asker.bodies("T")
            assert (len(bodies), set(bodies)) == (50, sent)

    simulate(lambda network: main())


def test_messages_go_on_the_wheel_later_where_its_files_have_no_room_now(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class NarrowDisk(MemoryDisk):
        is_full = False

        def map(self, path: str, size: int) -> MemoryMappedFile:
            if self.is_full and "/timerlog/" in path:
                raise OSError(errno.ENOSPC, "no room", path)
            return super().map(path, size)

    async def main() -> None:
        disk = NarrowDisk()
        disk.make_directory(ROOT)
        async with timing(disk) as asker:
            await asker.send("T", b"0", TIMER_DELAY_MS="500")
            disk.is_full = True
            sent = await send_many(asker, 100, spread_ms=3000)
            await asyncio.sleep(8)
            assert len(await asker.bodies("T")) < 101
            disk.is_full = False
            await asyncio.sleep(3)
            assert sorted(await asker.bodies("T")) == sorted([*sent, b"0"])

    with caplog.at_level(logging.WARNING):
        simulate(lambda network: main())
    assert "later" in caplog.text


def test_a_message_whose_record_is_gone_is_told_and_holds_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk) as asker:
            await asker.send("T", b"gone", TIMER_DELAY_SEC="2")
            await asker.send("T", b"there", TIMER_DELAY_SEC="2")
            raw = disk.map(f"{ROOT}/commitlog/{0:020d}", 256 * 1024).buffer
            raw[0:4] = b"\0\0\0\0"
            ((_, body),) = await arrivals(asker, 1)
            assert body == b"there"

    with caplog.at_level(logging.ERROR):
        simulate(lambda network: main())
    assert "left out" in caplog.text


def test_how_many_wait_is_kept_in_rocketmqs_file() -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk) as asker:
            await send_many(asker, 10, spread_ms=10, first_ms=1000)
            await send_many(asker, 7, spread_ms=10, first_ms=60_000)
            await asyncio.sleep(3)
        raw = disk.read(f"{ROOT}/config/timermetrics")
        assert raw is not None
        assert decode_state(raw.decode())["timingCount"]["T"]["count"] == 7

    simulate(lambda network: main())


def test_a_message_of_a_transaction_waits_from_its_commit_on_and_comes_once() -> None:
    async def main() -> None:
        disk = new_disk()
        half = {"TRAN_MSG": "true", "PGROUP": "p", "TIMER_DELAY_SEC": "3", "UNIQ_KEY": "K1"}
        async with timing(disk) as asker:
            sent = await asker.send("T", b"x", **half)
            _, log_offset = parse_offset_id(sent["msgId"])
            end = EndTransaction(
                producer_group="p",
                tran_state_table_offset=int(sent["queueOffset"]),
                commit_log_offset=log_offset,
                commit_or_rollback=COMMIT,
                msg_id="K1",
            )
            await asyncio.sleep(2)
            assert await asker.code(end) == 0
            await asyncio.sleep(2.9)
            assert await asker.bodies("T") == []
        async with timing(disk) as asker:
            assert await asker.code(end) == 0
            await asyncio.sleep(6)
            assert await asker.code(end) == 0
            await asyncio.sleep(6)
            assert await asker.bodies("T") == [b"x"]

    simulate(lambda network: main())
