"""Brokers that ask each other for older parts of logical queues."""

from __future__ import annotations

import asyncio

from tests.broker.logical.moving import Land, play

A, B = "broker-0", "broker-1"


def test_a_broker_is_found_again_after_it_was_away() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0", b"1")
        await land.move(B)
        assert await land.commit(B, 1) == 0
        holder = land.cluster.brokers[0]
        await holder.stop()
        assert (await land.pull(B, 0)).code == 1
        assert await land.commit(B, 2) == 1
        await holder.start()
        await asyncio.sleep(1)
        assert await land.committed(B) == 1
        assert await land.read(B, 1) == [(1, b"1")]

    play(test)


def test_without_name_servers_the_reply_is_an_error() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        await land.move(B)
        land.cluster.nameservers[0].kill()
        reply = await land.pull(B, 0)
        assert (reply.code, "no master" in (reply.remark or "")) == (1, True)
        assert (await land.pull(B, 10_000)).code == 19

    play(test)
