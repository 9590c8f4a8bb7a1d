"""Ordered consumption: commits by hand, parts of batches, rests, and whose a queue is."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from sprocket.client.base.subscription import Later, Outcome
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from sprocket.protocol.requests.send import SendBack
from sprocket.testing.cluster import Cluster
from tests.client.delivery.test_deliver import KEY, fill, ordered_at
from tests.client.fakes import FakeBroker, play, queue_of, until
from tests.client.group.test_membership import producer_in, with_cluster
from tests.support import run


def committed(broker: FakeBroker) -> int | None:
    return broker.committed.get(("readers", "orders", 0))


def test_committed_by_hand_the_position_moves_with_a_commit_only() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, auto_commit=False, commit_ms=100) as consumer,
        ):
            got: list[int] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Outcome | None:
                got.append(message.queue_offset)
                return Outcome.COMMIT if message.body in (b"3", b"7") else None

            fill(broker, 3)
            await until(lambda: len(got) == 3)
            await asyncio.sleep(30)
            assert committed(broker) == 0
            broker.put("orders", body="3")
            await until(lambda: committed(broker) == 4)
            for number in range(4, 9):
                broker.put("orders", body=str(number))
            await until(lambda: len(got) == 9)
            await until(lambda: committed(broker) == 8)
        assert committed(broker) == 8
        assert got == list(range(9))

    play(main)


def test_a_rollback_brings_back_all_since_the_last_commit_in_order() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, auto_commit=False) as consumer,
        ):
            fill(broker, 6)
            got: list[int] = []
            at: list[float] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Outcome | None:
                got.append(message.queue_offset)
                at.append(asyncio.get_running_loop().time())
                if message.queue_offset == 1:
                    return Outcome.COMMIT
                if message.queue_offset == 4:
                    return Outcome.ROLLBACK if got.count(4) == 1 else Outcome.COMMIT
                return None

            await until(lambda: len(got) == 9)
            assert got == [0, 1, 2, 3, 4, 2, 3, 4, 5]
            assert at[5] - at[4] >= 1
            await until(lambda: committed(broker) == 5)

    play(main)


def test_a_failure_before_a_commit_repeats_itself_and_nothing_before_it() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, auto_commit=False) as consumer,
        ):
            fill(broker, 3)
            got: list[int] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Outcome | Later | None:
                got.append(message.queue_offset)
                if message.queue_offset == 1 and got.count(1) == 1:
                    return Later()
                return Outcome.COMMIT if message.queue_offset == 2 else None

            await until(lambda: committed(broker) == 3)
            assert got == [0, 1, 1, 2]

    play(main)


def test_an_outcome_where_commits_are_automatic_is_a_mistake_and_repeats() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            fill(broker, 1)
            got: list[int] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Outcome | None:
                got.append(message.reconsume_times)
                return Outcome.COMMIT if len(got) == 1 else None

            await until(lambda: committed(broker) == 1)
            assert got == [0, 1]

    play(main)


def test_what_stands_behind_a_failure_in_a_batch_comes_again_in_order() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, reconsume_max=1) as consumer,
        ):
            fill(broker, 4)
            broker.refuse = lambda command, peer: 0 if command.code == SendBack.code else None
            got: list[list[tuple[int, int]]] = []

            @consumer.on("orders", batch=4)
            async def take(messages: list[StoredMessage]) -> list[Later | None]:
                got.append([(each.queue_offset, each.reconsume_times) for each in messages])
                return [Later() if each.queue_offset == 1 else None for each in messages]

            await until(lambda: committed(broker) == 4)
            assert got == [
                [(0, 0), (1, 0), (2, 0), (3, 0)],
                [(1, 1), (2, 0), (3, 0)],
                [(2, 0), (3, 0)],
            ]
            assert broker.count(SendBack) == 1

    play(main)


def test_a_listener_says_how_long_its_queue_rests_and_rests_can_grow() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            ordered_at(broker, suspend_ms=500, suspend_longest_ms=3_000) as consumer,
        ):
            fill(broker, 1)
            at: list[float] = []

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Later | None:
                at.append(asyncio.get_running_loop().time())
                if len(at) == 1:
                    return Later(pause_ms=7_000)
                return Later() if len(at) < 7 else None

            await until(lambda: committed(broker) == 1)
            rests = [round(later - sooner, 1) for sooner, later in itertools.pairwise(at)]
            assert rests == [7.0, 1.0, 2.0, 3.0, 3.0, 3.0]

    play(main)


def test_a_queue_that_rests_for_minutes_goes_on_by_itself() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, ordered_at(broker) as consumer:
            fill(broker, 2)
            got: list[int] = []
            began = asyncio.get_running_loop().time()

            @consumer.on("orders")
            async def take(message: StoredMessage) -> Later | None:
                if asyncio.get_running_loop().time() < began + 600:
                    return Later(pause_ms=30_000)
                got.append(message.queue_offset)
                return None

            await asyncio.sleep(590)
            assert consumer.queues == [queue_of("%RETRY%readers"), queue_of("orders")]
            assert broker.leases[KEY][0] == consumer.client_id
            await until(lambda: got == [0, 1], seconds=45)
            assert broker.count(UnlockQueues) == 0

    play(main)


def test_a_queue_is_given_up_only_when_its_batch_has_ended_however_long_it_takes() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1, "others": 1}) as broker:
            fill(broker, 2)
            loop = asyncio.get_running_loop()
            got: list[tuple[str, int]] = []
            ended = 0.0

            async def slow(message: StoredMessage) -> None:
                nonlocal ended
                got.append(("first", message.queue_offset))
                await asyncio.sleep(100)
                ended = loop.time()

            async def quick(message: StoredMessage) -> None:
                got.append(("second", message.queue_offset))
                assert ended, "the first one is through"

            async with ordered_at(broker, "c2", drain_ms=1_000) as first:
                first.subscribe("orders", listener=slow)
                await until(lambda: got)
                asked = broker.count(LockQueues)
                async with ordered_at(broker, "c1") as second:
                    # Queue 0 of one is the first member's by order of client ids.
                    second.subscribe("orders", listener=quick)
                    await until(lambda: ("second", 1) in got, seconds=120)
                    assert loop.time() - ended < 5
                assert got == [("first", 0), ("second", 1)]
                assert broker.count(LockQueues) >= asked + 4, "renewed meanwhile"

    play(main)


@pytest.mark.process
def test_a_thread_that_does_not_end_keeps_its_lease_until_that_runs_out() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1, "others": 1}) as broker:
            fill(broker, 1)
            broker.put("others")
            go_on = threading.Event()
            reached = []

            def hang(message: StoredMessage) -> None:
                reached.append(message.topic)
                if message.topic == "orders":
                    go_on.wait(20)

            async with ordered_at(broker, drain_ms=50) as consumer:
                consumer.subscribe("orders", listener=hang)
                consumer.subscribe("others", listener=hang)
                await until(lambda: sorted(reached) == ["orders", "others"])
            go_on.set()
            assert KEY in broker.leases
            assert ("others", 0) not in broker.leases

    run(main())


#: Body, who had it, and when.
Got = dict[bytes, tuple[str, float]]


def member_in(cluster: Cluster, name: str, got: Got) -> Any:
    process, world = cluster.client(name)
    consumer = PushConsumer(
        "readers",
        nameservers=cluster.nameserver_addresses,
        start="first",
        ordered=True,
        config=ConsumerConfig(drain_ms=0),
        world=world,
    )

    async def take(message: StoredMessage) -> None:
        got[message.body] = name, asyncio.get_running_loop().time()

    consumer.subscribe("orders", listener=take)
    return process, consumer


def test_the_first_message_comes_within_two_seconds_of_the_start() -> None:
    async def main(cluster: Cluster) -> None:
        got: Got = {}
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"0"))
            _, consumer = member_in(cluster, "c1", got)
            began = asyncio.get_running_loop().time()
            async with consumer:
                await until(lambda: got, seconds=10)
                assert got[b"0"][1] - began < 2

    with_cluster(main)


@pytest.mark.parametrize(("way", "seconds"), [("stop", 3), ("kill", 67)])
def test_the_next_owner_goes_on_soon_after_a_stop_and_within_the_lease_after_a_kill(
    way: str, seconds: int
) -> None:
    async def main(cluster: Cluster) -> None:
        got: Got = {}
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"0"))
            queue = (await producer.queues("orders"))[-1]
            first_process, first = member_in(cluster, "c1", got)
            first_process.start(first.start())
            await until(lambda: len(first.queues) == 5 and b"0" in got)
            _, second = member_in(cluster, "c2", got)
            if way == "kill":
                cluster.network.kill(first_process)
                first_process.kill()
            else:
                await first.close()
            gone = asyncio.get_running_loop().time()
            async with second:
                await producer.send(Message("orders", b"1"), queue=queue)
                await until(lambda: b"1" in got, seconds=100)
                assert got[b"1"][0] == "c2"
                assert got[b"1"][1] - gone < seconds

    with_cluster(main)
