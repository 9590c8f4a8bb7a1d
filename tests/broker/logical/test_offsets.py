"""Offsets of logical queues: a group's, the ends, and by time."""

from __future__ import annotations

import asyncio

from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.command import Header
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.offset import (
    UPPER,
    EarliestTime,
    MaxOffset,
    MinOffset,
    ResetOffset,
    SearchOffset,
    UpdateOffset,
)
from tests.broker.logical.moving import Land, commits, play

A, B, C = "broker-0", "broker-1", "broker-2"


async def offset_of(land: Land, broker: str, header: Header) -> int:
    reply = await land.call(broker, header)
    assert reply.code == 0, reply.remark
    return int(reply.fields.get("offset", reply.fields.get("timestamp", "")))


async def ends(land: Land, broker: str) -> tuple[int, int]:
    return (
        await offset_of(land, broker, MinOffset(topic="T", queue_id=0)),
        await offset_of(land, broker, MaxOffset(topic="T", queue_id=0)),
    )


async def moved(land: Land) -> list[int]:
    """A queue with two messages on each of two brokers; returns when each was stored, ms."""
    times = []
    await land.create(1, A)
    for broker, body in ((A, b"0"), (A, b"1"), (B, b"2"), (B, b"3")):
        if body == b"2":
            await land.move(B)
        await land.sent(broker, body)
        times.append(land.cluster.brokers[0].clock.now_ms())
        await asyncio.sleep(5)
    return times


def test_a_groups_offset_stays_valid() -> None:
    async def test(land: Land) -> None:
        await moved(land)
        assert await land.committed(B) is None
        assert await land.commit(B, 1) == 0
        assert await land.committed(B) == 1
        assert await land.commit(B, 10_001) == 0
        assert await land.committed(B) == 10_001
        assert await land.commit(B, 1) == 0
        assert await land.committed(B) == 1
        await land.commit(B, 10_002)
        await land.move(A)
        assert await land.committed(A) == 10_002
        assert await land.commit(A, 20_000) == 0
        assert await land.committed(A) == 20_000
        assert await land.commit(B, 5) == 501
        assert (await land.commit(A, 0, queue=3)) == 501

    play(test)


def test_a_pull_commits_a_logical_offset() -> None:
    async def test(land: Land) -> None:
        await moved(land)
        assert (await land.call(B, commits(10_000, 10_001))).code == 0
        assert await land.committed(B) == 10_001

    play(test)


def test_the_ends_of_a_logical_queue() -> None:
    async def test(land: Land) -> None:
        await moved(land)
        assert await ends(land, B) == (0, 10_002)
        await land.move(C)
        assert await ends(land, C) == (0, 20_000)
        await land.create(2, A, C)
        assert (await land.call(B, MaxOffset(topic="T", queue_id=0))).code == 501

    play(test, brokers=3)


def test_a_part_without_messages_is_not_the_beginning() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.move(B)
        assert await ends(land, B) == (10_000, 10_000)
        await land.sent(B, b"0")
        assert await ends(land, B) == (10_000, 10_001)

    play(test)


def test_offsets_by_time() -> None:
    async def test(land: Land) -> None:
        times = await moved(land)
        offsets = [0, 1, 10_000, 10_001]
        for at_ms, offset in zip(times, offsets, strict=True):
            lower = SearchOffset(topic="T", queue_id=0, timestamp=at_ms - 1_000)
            assert await offset_of(land, B, lower) == offset
            upper = SearchOffset(
                topic="T", queue_id=0, timestamp=at_ms + 1_000, boundary_type=UPPER
            )
            assert await offset_of(land, B, upper) == offset
        late = SearchOffset(topic="T", queue_id=0, timestamp=times[-1] + 60_000)
        assert await offset_of(land, B, late) == 10_002
        first = await offset_of(land, B, EarliestTime(topic="T", queue_id=0))
        assert abs(first - times[0]) < 1_000

    play(test)


def test_a_group_without_an_offset_starts_as_in_a_usual_queue() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        assert await land.committed(A) is None
        await land.commit(A, 1)
        assert await land.committed(A) == 1

    play(test)


def test_a_group_may_go_back_over_several_parts_and_lags_nowhere_behind() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        for number, broker in enumerate((A, B, C)):
            if number:
                await land.move(broker)
            await land.sent(broker, b"0", b"1")
        assert await land.commit(C, 1) == 0
        assert await land.commit(C, 10_001) == 0
        assert await land.commit(C, 20_001) == 0
        kept = [
            land.cluster.brokers[number].server._parts.tables.offsets.committed("g", "T", 0)
            for number in range(3)
        ]
        assert kept == [2, 2, 1]
        assert await land.commit(C, 1) == 0
        assert await land.committed(C) == 1
        await land.move(A)
        assert await land.committed(A) == 1
        assert await land.commit(A, 10_000) == 0
        assert await land.committed(A) == 10_000
        assert await land.commit(A, 30_000) == 0
        assert await land.committed(A) == 30_000
        taken = UpdateOffset(consumer_group="g", topic="T", queue_id=0, commit_offset=-1)
        assert (await land.call(A, taken)).code == 29

    play(test, brokers=3)


def test_a_lease_is_given_by_the_leader_only() -> None:
    async def test(land: Land) -> None:
        await land.create(2)
        mine = [number for number in range(2) if await land.leader(number) == A]
        asked = [Queue("__syslo__global__", number, "T") for number in range(2)]
        body = LockBody(client_id="c", consumer_group="g", mq_set=asked).encode()
        for _ in range(2):
            reply = await land.call(A, LockQueues(), body)
            locked = LockedBody.decode(reply.body).locked
            assert [(each.broker_name, each.queue_id) for each in locked] == [
                ("__syslo__global__", number) for number in mine
            ]
            mine = [0, 1]
            await land.move(A)
        body = body.replace(b"__syslo__global__", b"__syslo__other")
        assert LockedBody.decode((await land.call(A, LockQueues(), body)).body).locked == []

    play(test)


def test_an_operator_cannot_reset_a_part_alone() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.commit(A, 0)
        reply = await land.call(A, ResetOffset(topic="T", group="g", timestamp=0))
        assert (reply.code, "static topic" in (reply.remark or "")) == (29, True)

    play(test)
