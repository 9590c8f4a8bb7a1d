"""Sends to logical queues."""

from __future__ import annotations

from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from tests.broker.logical.moving import Land, play

A, B = "broker-0", "broker-1"
ILLEGAL, NOT_LEADER = 13, 501


class PhysicalSend(SendMessageV2, kw_only=True):
    """A send that claims to be for a queue of the broker itself."""

    def to_fields(self) -> dict[str, str]:
        return super().to_fields() | {"lo": "false"}


def test_queues_have_the_numbers_of_the_topic() -> None:
    async def test(land: Land) -> None:
        made = await land.create(4)
        for number in range(4):
            leader = await land.leader(number)
            assert await land.sent(leader, b"x", b"y", queue=number) == [0, 1]
            assert await land.read(leader, queue=number) == [(0, b"x"), (1, b"y")]
        assert {name: each.write_queue_nums for name, each in made.items()} == {A: 2, B: 2}

    play(test)


def test_a_producer_may_leave_the_queue_to_the_broker() -> None:
    async def test(land: Land) -> None:
        await land.create(4)
        reply = await land.send(A, b"x", queue=-1)
        assert await land.leader(int(reply.fields["queueId"])) == A
        await land.move(B)
        assert (await land.send(A, b"x", queue=-1)).code == NOT_LEADER

    play(test)


def test_a_batch_has_the_first_logical_offset() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.sent(A, b"0")
        await land.move(B)
        header = SendBatch(producer_group="p", topic="T", queue_id=0, born_timestamp=1, batch=True)
        batch = encode([BatchedMessage(0, b"a", ""), BatchedMessage(0, b"b", "")])
        reply = await land.call(B, header, batch)
        assert (reply.code, reply.fields["queueOffset"]) == (0, "10000")
        assert await land.read(B, 10_000) == [(10_000, b"a"), (10_001, b"b")]

    play(test)


def test_what_would_wait_elsewhere_is_refused() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        for properties in (
            {"DELAY": "3"},
            {"TIMER_DELAY_SEC": "5"},
            {"TRAN_MSG": "true"},
            {"PRIORITY": "1"},
        ):
            reply = await land.send(A, b"x", **properties)
            assert reply.code in (0, ILLEGAL)
            if reply.code == 0:
                assert properties == {"PRIORITY": "1"}  # there is only one queue
        assert (await land.send(A, b"x", DELAY="0")).code == 0
        assert [body for _, body in await land.read(A)] == [b"x", b"x"]

    play(test)


def test_nothing_is_added_to_a_part_that_is_over() -> None:
    async def test(land: Land) -> None:
        await land.create(1, A)
        await land.move(B)
        header = PhysicalSend(producer_group="p", topic="T", queue_id=0, born_timestamp=1)
        assert (await land.call(A, header, b"x")).code == NOT_LEADER

    play(test)


def test_messages_that_come_together_are_read_one_by_one() -> None:
    async def test(land: Land) -> None:
        import asyncio

        await land.create(1, A)
        await land.move(B)
        replies = await asyncio.gather(*(land.send(B, b"%d" % n) for n in range(50)))
        assert sorted(int(each.fields["queueOffset"]) for each in replies) == [
            10_000 + n for n in range(50)
        ]

    play(test)
