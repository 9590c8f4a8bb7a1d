"""Empty parts are dropped."""

from __future__ import annotations

import asyncio

from sprocket.admin import static_topics
from sprocket.protocol.requests.topic import DeleteTopic
from tests.broker.logical.moving import Land, play

A, B, C = "broker-0", "broker-1", "broker-2"


async def parts(land: Land, leader: str) -> list[str]:
    mapped = (await static_topics.mappings(land.caller, "T"))[leader]
    assert mapped.mapping_detail is not None
    return [part.bname for part in mapped.mapping_detail.hosted_queues[0]]


def test_parts_without_messages_are_dropped_from_the_oldest_on() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.move(B)
        await land.move(C)
        await land.sent(C, b"0")
        await land.move(A)
        assert await parts(land, A) == [A, B, C, A]
        await asyncio.sleep(3_700)
        assert await parts(land, A) == [B, C, A]
        await asyncio.sleep(3_700)
        await asyncio.sleep(3_700)
        assert await parts(land, A) == [C, A]
        assert await land.read(A) == [(20_000, b"0")]
        await land.move(B)
        assert await land.sent(B, b"1") == [40_000]
        assert await land.read(B) == [(20_000, b"0"), (40_000, b"1")]

    play(test, brokers=3)


def test_a_part_whose_broker_is_away_or_forgot_it_stays() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.move(B)
        land.cluster.brokers[0].kill()
        await asyncio.sleep(3_700)
        assert await parts(land, B) == [A, B]
        await land.cluster.brokers[0].start()
        assert (await land.call(B, DeleteTopic(topic="T"))).code == 0
        assert (await land.pull(B, 0)).code != 0

    play(test)
