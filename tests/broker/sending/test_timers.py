"""Taking messages back, and how many wait, through a broker's door."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import replace

import pytest

from sprocket.protocol.bodies import KvTable, TimerMetricsBody
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.replica import TimerCheckPoint, TimerMetrics
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.loop import simulate
from tests.broker.parts import STORE, SUCCESS, Asker, new_disk, play
from tests.delay.timing import handle_for, send_timed, take_back, timing


def test_a_message_that_was_taken_back_does_not_come_and_others_do() -> None:
    async def test(asker: Asker) -> None:
        handles = {}
        for number in range(4):
            sent = await asker.send("T", b"%d" % number, TIMER_DELAY_MS="5200")
            handles[number] = (sent["recallHandle"], sent["transactionId"])
        handle, unique_key = handles[2]
        reply = await take_back(asker, handle)
        assert (reply.code, reply.fields["msgId"]) == (SUCCESS, unique_key)
        assert (await take_back(asker, handle)).code == SUCCESS
        await asyncio.sleep(8)
        assert await asker.bodies("T") == [b"0", b"1", b"3"]

    play(test)


def test_a_recall_outlives_a_kill_and_a_long_way() -> None:
    async def main() -> None:
        disk = new_disk()
        async with timing(disk, timer_roll_slots=4) as asker:
            sent = await asker.send("T", b"gone", TIMER_DELAY_SEC="20")
            await asker.send("T", b"there", TIMER_DELAY_SEC="20")
            await asyncio.sleep(6)
            assert (await take_back(asker, sent["recallHandle"])).code == SUCCESS
            left = disk.after_kill()
        async with timing(left, timer_roll_slots=4) as asker:
            await asyncio.sleep(30)
            assert await asker.bodies("T") == [b"there"]

    simulate(lambda network: main())


def test_the_last_moment_to_take_a_message_back_is_before_its_second() -> None:
    async def test(asker: Asker) -> None:
        await asyncio.sleep(0.5)
        sent = await asker.send("T", b"x", TIMER_DELIVER_MS=str(EPOCH_MS + 5_900))
        await asyncio.sleep(4.4)
        assert (await take_back(asker, sent["recallHandle"])).code == SUCCESS
        sent = await asker.send("T", b"y", TIMER_DELIVER_MS=str(EPOCH_MS + 5_900))
        await asyncio.sleep(0.2)
        reply = await take_back(asker, sent["recallHandle"])
        assert (reply.code, reply.remark) == (604, "recall failed, timestamp invalid")
        await asyncio.sleep(2)
        assert await asker.bodies("T") == [b"y"]

    play(test)


@pytest.mark.parametrize(("handle", "topic", "code", "words"), [
    ("nonsense", "T", 604, "recall handle is invalid"),
    (handle_for(EPOCH_MS + 9000, "K", topic="U"), "T", 604, "topic not match"),
    (handle_for(EPOCH_MS + 9000, "K", broker="b"), "T", 604, "broker service not available"),
    (handle_for(EPOCH_MS - 1, "K"), "T", 604, "timestamp invalid"),
    (handle_for(EPOCH_MS + 4 * 86_400_000, "K"), "T", 604, "timestamp invalid"),
    (handle_for(EPOCH_MS + 9000, "K", topic="X"), "X", 17, "the topic[X] not exist"),
])  # fmt: skip
def test_recalls_that_cannot_be_are_refused_with_javas_words(
    handle: str, topic: str, code: int, words: str
) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        reply = await take_back(asker, handle, topic)
        assert (reply.code, words in (reply.remark or "")) == (code, True)
        assert await asker.max_offset("rmq_sys_wheel_timer") == 0

    play(test)


def test_a_broker_may_take_nothing_back() -> None:
    async def test(asker: Asker) -> None:
        sent = await asker.send("T", b"x", TIMER_DELAY_SEC="5")
        reply = await take_back(asker, sent["recallHandle"])
        assert (reply.code, reply.remark) == (16, "recall failed, operation is forbidden")

    play(test, recall=False)


def test_how_many_wait_is_told_by_topic_and_by_time() -> None:
    async def test(asker: Asker) -> None:
        for seconds in (3, 4, 50, 4000, 200_000):
            await asker.send("T", b"x", TIMER_DELAY_SEC=str(seconds))
        await asker.send("U", b"x", TIMER_DELAY_SEC="50")
        body = TimerMetricsBody.decode((await asker.call(TimerMetrics())).body)
        assert {topic: m.count for topic, m in body.timing_count.items()} == {"T": 5, "U": 1}
        spans = body.timing_distribution or {}
        assert {text: n for text, n in spans.items() if n} == {"5": 2, "60": 2, "14400": 1}
        assert body.later_count == 1
        assert body.next_deliver_time == EPOCH_MS + 2000
        await asyncio.sleep(60)
        table = KvTable.decode((await asker.call(BrokerState())).body).table
        assert table["timerCongestNum"] == "2"
        assert (table["timerOffsetBehind"], table["timerReadBehind"]) == ("0", "0")
        assert float(table["timerEnqueueTps"]) >= 0
        raw = bytes((await asker.call(TimerCheckPoint())).body)
        slot_ms, _, queue_next, master_next, *_ = struct.unpack(">7q", raw)
        assert (queue_next, master_next) == (6, 6)
        assert EPOCH_MS + 50_000 <= slot_ms <= EPOCH_MS + 60_000

    play(test)


def test_a_broker_without_timers_tells_and_takes_nothing() -> None:
    async def test(asker: Asker) -> None:
        assert (await asker.call(TimerMetrics())).code == 1
        assert (await asker.call(TimerCheckPoint())).code == 1
        await asker.create("T")
        reply = await take_back(asker, handle_for(EPOCH_MS + 9000, "K"))
        assert (reply.code, reply.remark) == (1, "recall failed, execute error")
        assert (await send_timed(asker, b"x", TIMER_DELAY_SEC="1")).code == 1

    play(test, store=replace(STORE, timers=False))
