"""Ordered consumption; what is peculiar to the concurrent strategy shows in `test_consumer` too."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.send import SendBack
from tests.client.fakes import FakeBroker, play, queue_of, until, world

KEY = ("orders", 0)


def ordered_at(broker: FakeBroker, name: str = "c1", **settings: Any) -> PushConsumer:
    return PushConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        ordered=True,
        config=ConsumerConfig(**settings),
        world=world(name, f"10.0.0.{ord(name[-1])}"),
    )


def concurrent_at(broker: FakeBroker) -> PushConsumer:
    return PushConsumer(
        "readers", nameservers=broker.address, start="first", world=world("c1", "10.0.0.1")
    )


def fill(broker: FakeBroker, count: int, queues: int = 1) -> None:
    for number in range(count):
        broker.put("orders", number % queues, body=str(number))


def test_each_queue_comes_in_order_though_queues_come_side_by_side() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 3}) as broker, ordered_at(broker) as consumer:
            fill(broker, 60, queues=3)
            got: list[tuple[int, int]] = []
            running: set[int] = set()
            most = 0

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                nonlocal most
                number = message.queue.number
                assert number not in running, "one at a time"
                running.add(number)
                most = max(most, len(running))
                await asyncio.sleep(0.05)
                running.discard(number)
                got.append((number, message.queue_offset))

            await until(lambda: len(got) == 60)
            for number in range(3):
                assert [at for n, at in got if n == number] == list(range(20))
            assert most == 3

    play(main)


def test_a_failing_message_holds_its_queue_up_until_it_succeeds() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, ordered_at(broker) as consumer:
            fill(broker, 8, queues=2)
            loop = asyncio.get_running_loop()
            got: list[tuple[int, int, int]] = []
            at: list[float] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                if message.queue.number == 0 and message.queue_offset == 1 and len(at) < 5:
                    at.append(loop.time())
                    raise ValueError("not today")
                got.append((message.queue.number, message.queue_offset, message.reconsume_times))

            await until(lambda: len(got) == 8)
            assert [entry for entry in got if entry[0] == 0] == [
                (0, 0, 0), (0, 1, 5), (0, 2, 0), (0, 3, 0),
            ]  # fmt: skip
            assert got.index((1, 3, 0)) < got.index((0, 1, 5)), "the other queue went on"
            pauses = [later - sooner for sooner, later in itertools.pairwise(at)]
            assert all(0.99 < pause < 1.2 for pause in pauses)
            assert not broker.count(SendBack)

    play(main)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_beyond_the_limit_a_message_is_a_dead_letter_once_and_the_queue_moves_on(
    limit: int,
) -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, reconsume_max=limit) as consumer,
        ):
            fill(broker, 3)
            got: list[bytes] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Later | None:
                got.append(message.body)
                return Later() if message.body == b"1" and message.topic == "orders" else None

            broker.refuse = _swallow_dead_letters
            await until(lambda: b"2" in got)
            assert got == [b"0", *[b"1"] * (limit + 1), b"2"]
            assert broker.count(SendBack) == 1
            assert broker.last(SendBack).read(SendBack).delay_level == -1

    play(main)


def _swallow_dead_letters(command: Any, peer: Any) -> int | None:
    return 0 if command.code == SendBack.code else None


def test_a_listener_can_make_a_dead_letter_at_once() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            fill(broker, 2)
            broker.refuse = _swallow_dead_letters
            got: list[bytes] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Later | None:
                got.append(message.body)
                return Later(-1) if message.body == b"0" else None

            await until(lambda: len(got) == 2)
            assert got == [b"0", b"1"]
            assert broker.count(SendBack) == 1

    play(main)


def test_batches_come_in_order_and_fail_together() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            fill(broker, 7)
            got: list[list[int]] = []
            async with ordered_at(broker) as consumer:

                @consumer.on("orders", batch=3)
                async def take(messages: list[StoredMessage]) -> Later | None:
                    got.append([message.queue_offset for message in messages])
                    return Later() if len(got) == 2 else None

                await until(lambda: got and got[-1][-1] == 6)
            assert got == [[0, 1, 2], [3, 4, 5], [3, 4, 5], [6]]
            assert broker.committed["readers", "orders", 0] == 7

    play(main)


def test_a_queue_is_read_only_under_a_lease_which_is_given_back() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.leases[KEY] = ("somebody else", 30.0)
            fill(broker, 1)
            got: list[int] = []
            async with ordered_at(broker) as consumer:
                consumer.subscribe("orders", listener=_noting(got))
                await asyncio.sleep(20)
                assert not got
                assert queue_of("orders") not in consumer.queues
                await until(lambda: got, seconds=15)
                assert broker.leases[KEY][0] == consumer.client_id
            assert KEY not in broker.leases

    play(main)


def test_leases_are_renewed_as_long_as_it_takes() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            got: list[int] = []
            consumer.subscribe("orders", listener=_noting(got))
            for _ in range(100):
                broker.put("orders")
                await asyncio.sleep(1)
            assert got == list(range(100))
            assert broker.count(LockQueues) >= 5

    play(main)


def test_a_second_member_takes_over_within_moments_and_in_order() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            fill(broker, 10)
            got: list[int] = []
            first, second = ordered_at(broker, "c1"), ordered_at(broker, "c2")

            async def slow(message: StoredMessage) -> None:
                await asyncio.sleep(0.3)
                got.append(message.queue_offset)

            for consumer in (first, second):
                consumer.subscribe("orders", listener=slow)
            async with first:
                await until(lambda: len(got) == 3)
                await second.start()
            loop = asyncio.get_running_loop()
            began, seen = loop.time(), len(got)
            await until(lambda: len(got) > seen)
            assert loop.time() - began < 5
            await until(lambda: len(got) == 10)
            assert got == list(range(10))
            await second.close()

    play(main)


def test_without_renewal_nothing_is_handed_out_after_thirty_seconds() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            got: list[int] = []
            consumer.subscribe("orders", listener=_noting(got))
            await until(lambda: queue_of("orders") in consumer.queues)
            broker.refuse = lambda command, peer: 1 if command.code == LockQueues.code else None
            await asyncio.sleep(31)
            broker.put("orders")
            await asyncio.sleep(10)
            assert not got
            broker.refuse = lambda command, peer: None
            await until(lambda: got, seconds=3)

    play(main)


def test_a_lost_lease_drops_the_queue_and_what_was_fetched() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            got: list[int] = []
            async with ordered_at(broker) as consumer:
                consumer.subscribe("orders", listener=_noting(got))
                await until(lambda: queue_of("orders") in consumer.queues)
                broker.leases[KEY] = ("somebody else", asyncio.get_running_loop().time() + 3600)
                await until(lambda: queue_of("orders") not in consumer.queues)
                broker.put("orders")
                await asyncio.sleep(5)
                assert not got
            assert broker.leases[KEY][0] == "somebody else"

    play(main)


def test_after_a_broken_connection_a_lease_is_not_trusted_before_it_is_renewed() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            go_on = asyncio.Event()
            got: list[int] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                got.append(message.queue_offset)
                await go_on.wait()

            fill(broker, 5)
            await until(lambda: got == [0])
            # The broker is started anew, has forgotten its leases, and gives ours to another.
            broker.leases[KEY] = ("somebody else", asyncio.get_running_loop().time() + 3600)
            for peer in broker.peers:
                peer.abort()
            await asyncio.sleep(0.1)
            go_on.set()
            await asyncio.sleep(20)
            assert got == [0]

    play(main)


def test_ordered_messages_cannot_be_iterated_over() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            with pytest.raises(UsageError, match="listeners"):
                consumer.subscribe("orders")

    play(main)


def test_a_listener_that_never_waits_has_queues_take_turns() -> None:
    """Also while a queue has more than enough for a worker's turn."""

    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, concurrent_at(broker) as consumer:
            got: list[int] = []
            fill(broker, 400, queues=2)

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                got.append(message.queue.number)

            await until(lambda: len(got) == 400)
            runs = [len(list(run)) for _, run in itertools.groupby(got)]
            assert max(runs) < 200, "neither queue is served whole before the other"

    play(main)


def test_messages_behind_one_that_takes_long_are_handed_to_others() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, concurrent_at(broker) as consumer:
            got: list[int] = []
            fill(broker, 30)

            @consumer.on("orders")
            async def take(message: StoredMessage) -> None:
                if message.queue_offset == 3:
                    await asyncio.sleep(600)
                got.append(message.queue_offset)

            await until(lambda: len(got) == 29)
            assert sorted(got) == [n for n in range(30) if n != 3]
            (window,) = [each for each in consumer.statistics().windows if each.in_flight]
            assert (window.position, window.in_flight) == (3, 1)
            assert consumer.statistics().topics["orders"].consumed == 29

    play(main)


def _noting(got: list[int]) -> Any:
    async def listener(message: StoredMessage) -> None:
        got.append(message.queue_offset)

    return listener
