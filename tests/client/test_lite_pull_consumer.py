"""The lite pull consumer against a small broker, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from sprocket.base.errors import ClosedError, ReplyError, UsageError
from sprocket.client.config import LitePullConfig
from sprocket.client.group.offsets import Start
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ResetOffsetBody
from sprocket.protocol.bodies.body import Queue
from sprocket.protocol.requests.client import GroupMembers
from sprocket.protocol.requests.offset import ResetClientOffset, UpdateOffset
from sprocket.protocol.requests.pull import COMMIT_OFFSET, SUBSCRIPTION, PullMessage
from tests.client.fakes import FakeBroker, play, queue_of, until, world

QUEUE = queue_of("orders", 0)


def consumer_of(broker: FakeBroker, name: str = "c1", **settings: Any) -> LitePullConsumer:
    start: Start = settings.pop("start", "first")
    return LitePullConsumer(
        "readers",
        nameservers=broker.address,
        start=start,
        config=LitePullConfig(**settings),
        world=world(name),
    )


def filled(broker: FakeBroker, count: int, number: int = 0) -> None:
    for each in range(count):
        broker.put("orders", number, body=f"m{each}")


def bodies(messages: Sequence[StoredMessage]) -> list[bytes]:
    return [message.body for message in messages]


def committed(broker: FakeBroker, number: int = 0) -> int | None:
    return broker.committed.get(("readers", "orders", number))


def test_a_poll_returns_what_lies_there_and_waits_for_what_comes() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, consumer_of(broker) as consumer:
            consumer.subscribe("orders")
            filled(broker, 3)
            assert bodies(await consumer.poll()) == [b"m0", b"m1", b"m2"]
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await consumer.poll(timeout_ms=2_000) == []
            assert loop.time() - began == pytest.approx(2, abs=0.1)
            loop.call_later(1, lambda: broker.put("orders", 1, body="late"))
            assert bodies(await consumer.poll(timeout_ms=20_000)) == [b"late"]
            assert loop.time() - began == pytest.approx(3, abs=0.1)
            assert consumer.assignment == [queue_of("orders", 0), queue_of("orders", 1)]

    play(main)


def test_what_was_returned_is_committed_once_the_next_poll_is_asked_for() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            filled(broker, 4)
            async with consumer_of(broker, poll_batch=2) as consumer:
                consumer.subscribe("orders")
                assert len(await consumer.poll()) == 2
                await asyncio.sleep(6)
                assert committed(broker) == 0
                assert len(await consumer.poll()) == 2
                await asyncio.sleep(6)
                assert committed(broker) == 2
            assert committed(broker) == 2
            pulls = [c.read(PullMessage) for c in broker.asked if c.code == PullMessage.code]
            assert not any(pull.sys_flag & COMMIT_OFFSET for pull in pulls)
            async with consumer_of(broker, "c2") as consumer:
                consumer.subscribe("orders")
                assert bodies(await consumer.poll()) == [b"m2", b"m3"]
                await consumer.commit()
            assert committed(broker) == 4

    play(main)


def test_without_auto_commit_nothing_is_committed_by_itself() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            filled(broker, 3)
            async with consumer_of(broker, auto_commit=False, poll_batch=2) as consumer:
                consumer.subscribe("orders")
                for _ in range(3):
                    await consumer.poll(timeout_ms=1_000)
                    await asyncio.sleep(6)
                assert not broker.count(UpdateOffset)
            assert committed(broker) is None
            async with consumer_of(broker, "c2", auto_commit=False) as consumer:
                consumer.subscribe("orders")
                assert len(await consumer.poll()) == 3
                await consumer.commit({QUEUE: 1})
                assert await consumer.committed(QUEUE) == 1
                await consumer.commit()
                assert committed(broker) == 3

    play(main)


def test_a_commit_that_fails_says_so() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            filled(broker, 1)
            async with consumer_of(broker, auto_commit=False) as consumer:
                consumer.subscribe("orders")
                await consumer.poll()
                broker.refuse = lambda command, peer: 1 if command.code == 15 else None
                with pytest.raises(ReplyError):
                    await consumer.commit()
                broker.refuse = lambda command, peer: None
                await consumer.commit()
                assert committed(broker) == 1

    play(main)


def test_seeking_goes_to_an_offset_the_ends_and_a_time() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            filled(broker, 5)
            await asyncio.sleep(10)
            moment = broker.put("orders", body="m5").stored_ms
            consumer.subscribe("orders")
            assert len(await consumer.poll()) == 6
            await consumer.seek(QUEUE, 4)
            assert await consumer.position(QUEUE) == 4
            assert bodies(await consumer.poll()) == [b"m4", b"m5"]
            await consumer.seek_to_begin(QUEUE)
            assert len(await consumer.poll()) == 6
            await consumer.seek_to_time(QUEUE, moment)
            assert bodies(await consumer.poll()) == [b"m5"]
            await consumer.seek_to_time(QUEUE, datetime.fromtimestamp(moment / 1000, UTC))
            assert bodies(await consumer.poll()) == [b"m5"]
            await consumer.seek_to_begin(QUEUE)
            await consumer.seek_to_end(QUEUE)
            broker.put("orders", body="m6")
            assert bodies(await consumer.poll()) == [b"m6"]
            for outside in (8, 100):
                with pytest.raises(UsageError, match="offsets 0 to 7"):
                    await consumer.seek(QUEUE, outside)

    play(main)


def test_a_seek_back_is_not_undone_by_what_was_polled_before_it() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            filled(broker, 10)
            consumer.subscribe("orders")
            assert len(await consumer.poll()) == 10
            await consumer.seek(QUEUE, 2)
            await consumer.commit()
            assert committed(broker) == 2
            await asyncio.sleep(20)
            assert committed(broker) == 2
            assert bodies(await consumer.poll())[0] == b"m2"

    play(main)


@pytest.mark.parametrize("auto_commit", [True, False])
def test_an_operators_reset_is_not_undone_by_a_poll_or_commit_under_way(auto_commit: bool) -> None:
    async def main() -> None:
        settings: dict[str, Any] = {"auto_commit": auto_commit}
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker, **settings) as consumer:
            filled(broker, 10)
            consumer.subscribe("orders")
            assert len(await consumer.poll()) == 10
            table = {Queue(broker_name="broker-a", queue_id=0, topic="orders"): 3}
            header = ResetClientOffset(topic="orders", group="readers", timestamp=0)
            for peer in broker.peers:
                peer.send_oneway(header, body=ResetOffsetBody(offset_table=table).encode())
            await until(lambda: committed(broker) == 3)
            await consumer.commit()
            await asyncio.sleep(10)
            assert committed(broker) == 3
            assert bodies(await consumer.poll())[0] == b"m3"

    play(main)


def test_a_paused_queue_returns_nothing_also_of_what_was_fetched() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker:
            filled(broker, 3, 0)
            filled(broker, 3, 1)
            async with consumer_of(broker) as consumer:
                consumer.subscribe("orders")
                await until(lambda: len(consumer.assignment) == 2)
                await asyncio.sleep(1)
                consumer.pause([QUEUE])
                assert {m.queue.number for m in await consumer.poll()} == {1}
                assert await consumer.poll(timeout_ms=60_000) == []
                asyncio.get_running_loop().call_later(1, consumer.resume, [QUEUE])
                assert {m.queue.number for m in await consumer.poll()} == {0}

    play(main)


def test_only_matching_tags_are_returned_whatever_other_members_subscribe() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            for tag in "abab":
                broker.put("orders", TAGS=tag)
            consumer.subscribe("orders", tags="a")
            assert [message.tag for message in await consumer.poll()] == ["a", "a"]
            header = broker.last(PullMessage).read(PullMessage)
            assert header.sys_flag & SUBSCRIPTION
            assert header.subscription == "a"
            described = broker.heartbeats[-1].consumers[0]
            assert described.consume_type == "CONSUME_ACTIVELY"

    play(main)


def test_assigned_queues_are_read_without_being_a_member() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker, consumer_of(broker) as consumer:
            for number in range(4):
                broker.put("orders", number, body=f"q{number}")
            queues = await consumer.queues("orders")
            consumer.assign(queues[1:3])
            await consumer.seek(queues[2], 1)
            got = bodies(await consumer.poll())
            assert got == [b"q1"]
            assert not broker.count(GroupMembers)
            assert not any(beat.consumers for beat in broker.heartbeats)
            await consumer.commit()
            assert (committed(broker, 1), committed(broker, 2)) == (1, 1)
            consumer.assign(queues[3:])
            await until(lambda: consumer.assignment == queues[3:])
            assert bodies(await consumer.poll()) == [b"q3"]
            with pytest.raises(UsageError, match="not among the queues"):
                await consumer.seek(queues[0], 0)

    play(main)


def test_members_share_queues_and_are_told_their_shares() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker, consumer_of(broker, "c1") as one:
            shares: list[tuple[str, list[int]]] = []

            def told(topic: str, queues: Sequence[QueueId]) -> None:
                shares.append((topic, [queue.number for queue in queues]))

            one.on_assignment(told)
            one.subscribe("orders")
            await until(lambda: len(one.assignment) == 4)
            async with consumer_of(broker, "c2") as two:
                two.subscribe("orders")
                await until(lambda: len(two.assignment) == len(one.assignment) == 2)
            await until(lambda: len(one.assignment) == 4)
            halves = shares[1][1]
            assert shares == [("orders", [0, 1, 2, 3]), ("orders", halves), shares[0]]
            assert halves in ([0, 1], [2, 3])

    play(main)


def test_what_belongs_to_a_queue_that_was_lost_is_neither_returned_nor_moves_the_position() -> None:
    """Every message is returned at least once, while the one queue goes to and fro."""

    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker, "c1") as one:
            one.subscribe("orders")
            seen: set[bytes] = set()
            sent = 0

            async def send() -> None:
                nonlocal sent
                while sent < 400:
                    broker.put("orders", body=f"m{sent}")
                    sent += 1
                    await asyncio.sleep(0.05)

            async def keep_polling(consumer: LitePullConsumer) -> None:
                while True:
                    seen.update(bodies(await consumer.poll(timeout_ms=1_000)))
                    await asyncio.sleep(0.3)

            sending = asyncio.ensure_future(send())
            polling = asyncio.ensure_future(keep_polling(one))
            for turn in range(6):
                await asyncio.sleep(2)
                async with consumer_of(broker, f"d{turn}") as two:
                    two.subscribe("orders")
                    also = asyncio.ensure_future(keep_polling(two))
                    await asyncio.sleep(1.5)
                    also.cancel()
                assert (committed(broker) or 0) <= len(seen)
            await sending
            await until(lambda: len(seen) == sent)
            polling.cancel()

    play(main)


def test_misuse_is_named() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            consumer = consumer_of(broker)
            with pytest.raises(ClosedError):
                await consumer.poll()
            async with consumer:
                with pytest.raises(UsageError, match="subscribe topics or assign queues"):
                    await consumer.poll()
                consumer.subscribe("orders")
                with pytest.raises(UsageError, match="cannot be assigned too"):
                    consumer.assign([QUEUE])
                polling = asyncio.ensure_future(consumer.poll(timeout_ms=1_000))
                await asyncio.sleep(0.1)
                with pytest.raises(UsageError, match="one poll at a time"):
                    await consumer.poll()
                assert await polling == []
            other = consumer_of(broker, "c2")
            other.assign([QUEUE])
            with pytest.raises(UsageError, match="cannot be subscribed too"):
                other.subscribe("orders")

    play(main)


def test_closing_ends_a_poll_and_statistics_count() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            filled(broker, 3)
            consumer.subscribe("orders")
            await consumer.poll()
            told = consumer.statistics().topics["orders"]
            assert (told.pulled, told.waiting, told.in_flight) == (3, 0, 3)
            await asyncio.sleep(2)
            polling = asyncio.ensure_future(consumer.poll(timeout_ms=600_000))
            await asyncio.sleep(1)
            told = consumer.statistics().topics["orders"]
            assert (told.consumed, told.failed, told.in_flight) == (3, 0, 0)
            assert abs(told.listener_ms - 2_000) < 1
            await consumer.close()
            assert await polling == []

    play(main)
