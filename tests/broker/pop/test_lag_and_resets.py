"""What is in flight counts as lag; a reset makes handles void; deleted topics; batches of acks."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.message.record import scan
from sprocket.protocol.bodies import AckBatchBody, AckItem
from sprocket.protocol.requests.offset import ResetOffset
from sprocket.protocol.requests.pop import (
    AckMessages,
    Notification,
    PeekMessage,
    PollingInfo,
)
from sprocket.protocol.requests.topic import DeleteTopic
from tests.broker.parts import Asker, play
from tests.broker.pop.popping import GONE, POLLING_TIMEOUT, ack, hide, items_of, lag, pop
from tests.broker.pop.test_pops import crashing, filled


async def reset(asker: Asker, offset: int) -> None:
    header = ResetOffset(
        topic="t", group="g", queue_id=0, offset=offset, timestamp=-1, is_force=True
    )
    assert await asker.code(header) == 0


def test_lag_counts_what_is_in_flight_and_what_waits_to_come_again() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 5)
        first = await pop(asker, count=3)
        assert await lag(asker) == 5
        assert await ack(asker, first, 0) == [0]
        assert await lag(asker) == 4
        await hide(asker, first, 1, hidden_ms=20_000)
        assert await lag(asker) == 4
        await asyncio.sleep(13)
        assert await lag(asker) == 4
        assert await ack(asker, await pop(asker)) == [0, 0, 0]
        assert await lag(asker) == 1
        assert await ack(asker, first, 1) == [0]
        assert await lag(asker) == 0

    play(test)


def test_lag_is_the_same_after_a_crash() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 9)
        assert await ack(asker, await pop(asker, count=3), 0) == [0]
        await asyncio.sleep(6)
        second = await pop(asker, count=4)
        assert await ack(asker, second, 0, 1) == [0, 0]
        await hide(asker, second, 2, hidden_ms=20_000)
        assert await lag(asker) == 6

    async def after(asker: Asker) -> None:
        assert await lag(asker) == 6
        await asyncio.sleep(40)
        assert await lag(asker) == 6
        found = await pop(asker)
        assert len(found.bodies) == 6
        await ack(asker, found)
        assert await lag(asker) == 0

    crashing(before, after)


@pytest.mark.parametrize("to", [0, 4])
def test_a_reset_makes_the_handles_before_it_void(to: int) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        before = await pop(asker, count=2)
        await reset(asker, to)
        assert await ack(asker, before) == [GONE, GONE]
        await hide(asker, before, hidden_ms=1_000)
        assert before.code == GONE
        assert await lag(asker) == 4 - to
        again = await pop(asker)
        assert again.bodies == [b"0", b"1", b"2", b"3"][to:]
        assert await ack(asker, again) == [0] * (4 - to)
        await asyncio.sleep(20)
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)


def test_a_reset_outlives_a_crash() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 4)
        await pop(asker, count=2)
        await reset(asker, 4)

    async def after(asker: Asker) -> None:
        await asyncio.sleep(20)
        assert (await pop(asker)).code == POLLING_TIMEOUT
        assert await lag(asker) == 0

    crashing(before, after)


def test_a_reset_unlocks_a_queue_that_is_popped_in_order() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        first = await pop(asker, order=True, count=2)
        await reset(asker, 1)
        assert await ack(asker, first) == [GONE, GONE]
        assert (await pop(asker, order=True)).bodies == [b"1", b"2", b"3"]

    play(test)


def test_what_was_popped_of_a_deleted_topic_does_not_come_from_a_new_one() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 2)
        first = await pop(asker)
        waiting = asyncio.create_task(pop(asker, hold_ms=60_000))
        await asyncio.sleep(0.1)
        assert await asker.code(DeleteTopic(topic="t")) == 0
        assert (await waiting).code == 17
        await filled(asker, 2)
        assert await ack(asker, first, 0) == [GONE]
        assert (await pop(asker)).bodies == [b"0", b"1"]
        await asyncio.sleep(13)
        assert (await pop(asker)).bodies == [b"0", b"1"]

    play(test)


@pytest.mark.parametrize("order", [False, True])
def test_several_are_acknowledged_at_once(order: bool) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 5)
        found = await pop(asker, order=order)
        body = AckBatchBody(acks=[items_of(found, 0, 2, 4)], broker_name="broker-a")
        assert await asker.code(AckMessages(), body.encode()) == 0
        await asyncio.sleep(13)
        assert (await pop(asker, order=order)).bodies == [b"1", b"3"]
        assert await asker.code(AckMessages(), b"") == GONE
        body = AckBatchBody(acks=[AckItem(bits="!", consumer_group="g", topic="t")])
        assert await asker.code(AckMessages(), body.encode()) == 29

    play(test)


def test_peek_notification_and_polling_info() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 2)
        peek = PeekMessage(consumer_group="g", topic="t", queue_id=-1, max_msg_nums=32)
        notify = Notification(
            consumer_group="g", topic="t", queue_id=-1, poll_time=10_000, born_time=0
        )
        assert await asker.code(peek) == 19
        waiting = asyncio.create_task(asker.call(notify))
        held = [asyncio.create_task(pop(asker, hold_ms=5_000)) for _ in range(2)]
        await asyncio.sleep(0.1)
        info = PollingInfo(consumer_group="g", topic="t", queue_id=-1)
        assert (await asker.call(info)).fields["pollingNum"] == "2"
        await asker.send("t", b"x", queue=1)
        assert (await waiting).fields["hasMsg"] == "true"
        assert sorted([(await each).bodies for each in held]) == [[], [b"x"]]
        await asker.send("t", b"y", queue=0)
        for _ in range(2):
            reply = await asker.call(peek)
            assert [each.body for each in scan(bytes(reply.body))] == [b"y"]
        assert (await asker.call(notify)).fields["hasMsg"] == "true"
        assert (await pop(asker)).bodies == [b"y"]
        assert (await asker.call(notify)).fields["hasMsg"] == "true"  # what comes again
        assert (await pop(asker)).bodies == [b"x"]

    play(test)
