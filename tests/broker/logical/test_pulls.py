"""Messages of a logical queue are read in order while it moves."""

from __future__ import annotations

import asyncio

from tests.broker.logical.moving import Land, messages, play

A, B, C = "broker-0", "broker-1", "broker-2"
NOT_FOUND, RETRY, MOVED, NOT_LEADER = 19, 20, 21, 501


def test_a_queue_is_read_across_its_moves_in_order() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        assert await land.sent(A, b"0", b"1", b"2") == [0, 1, 2]
        await land.move(B)
        assert await land.leader() == B
        assert await land.sent(B, b"3", b"4") == [10_000, 10_001]
        expected = [(0, b"0"), (1, b"1"), (2, b"2"), (10_000, b"3"), (10_001, b"4")]
        assert await land.read(B) == expected
        assert await land.read(B, 2) == expected[2:]
        await land.move(C)
        await land.move(A)
        assert await land.sent(A, b"5") == [30_000]
        assert await land.read(A) == [*expected, (30_000, b"5")]

    play(test, brokers=3)


def test_another_broker_than_the_leader_refuses() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        await land.move(B)
        assert (await land.pull(A, 0)).code == NOT_LEADER
        assert (await land.send(A, b"1")).code == NOT_LEADER
        assert (await land.pull(B, 0, queue=7)).code == NOT_LEADER
        assert (await land.send(B, b"1", queue=7)).code == NOT_LEADER

    play(test)


def test_a_pull_is_held_at_the_end_and_ends_when_the_queue_moves() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        pulling = asyncio.ensure_future(land.pull(A, 0, hold_ms=20_000))
        await asyncio.sleep(1)
        await land.sent(A, b"0")
        (got,) = messages(await pulling)
        assert got.body == b"0"
        pulling = asyncio.ensure_future(land.pull(A, 1, hold_ms=20_000))
        await asyncio.sleep(1)
        assert not pulling.done()
        await land.move(B)
        await asyncio.sleep(0.1)
        reply = await asyncio.wait_for(pulling, 1)
        assert (reply.code, reply.fields["nextBeginOffset"]) == (NOT_FOUND, "1")

    play(test)


def test_what_is_sent_while_the_new_part_is_undecided_comes_after_all_before() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        put = land.caller.ask
        asked = 0

        async def slowly(address: str, header: object, **more: object) -> object:
            nonlocal asked
            asked += 1
            if asked == 4:  # both mappings are sent, and where the old part ends is known
                reply = await land.send(B, b"1")
                assert reply.fields["queueOffset"] == "-1"
                assert await land.read(B) == [(0, b"0")]
                held = await asyncio.wait_for(land.pull(B, 1, hold_ms=500), 2)
                assert (held.code, held.fields["nextBeginOffset"]) == (NOT_FOUND, "1")
            return await put(address, header, **more)  # type: ignore[arg-type]

        land.caller.ask = slowly  # type: ignore[method-assign, assignment]
        known = len(land.cluster.brokers)
        asked = -known
        await land.move(B)
        assert await land.read(B) == [(0, b"0"), (10_000, b"1")]

    play(test)


def test_an_offset_outside_of_the_queue_is_corrected() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0", b"1")
        reply = await land.pull(A, 500)
        assert (reply.code, reply.fields["nextBeginOffset"]) == (MOVED, "2")
        await land.move(B)
        reply = await land.pull(B, 500)
        assert (reply.code, reply.fields["nextBeginOffset"]) == (RETRY, "10000")
        await land.sent(B, b"2")
        reply = await land.pull(B, 20_000)
        assert (reply.code, reply.fields["nextBeginOffset"]) == (MOVED, "10001")

    play(test)


def test_the_part_of_a_broker_that_is_away_is_not_skipped() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        await land.move(B)
        await land.sent(B, b"1")
        machine = land.cluster.brokers[0]
        machine.kill()
        reply = await land.pull(B, 0)
        assert reply.code == 1
        assert (await land.pull(B, 10_000)).code == 0
        await machine.start()
        await asyncio.sleep(1)
        assert await land.read(B) == [(0, b"0"), (10_000, b"1")]

    play(test)
