from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import ClosedError, ConfigError, NoPermission, RouteNotFound, UsageError
from sprocket.client.config import PullConfig
from sprocket.client.pull_consumer import PullConsumer
from sprocket.clientcore.replies import PullStatus
from sprocket.message.opening import OPENED_AT_ONCE_BYTES
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage
from tests.client.fakes import FakeBroker, play, queue_of, until, world


def consumer_of(broker: FakeBroker) -> PullConsumer:
    return PullConsumer("audit", nameservers=broker.address, world=world())


def test_queues_are_sorted_and_asked_anew() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker, consumer_of(broker) as consumer:
            assert await consumer.queues("orders") == [queue_of("orders", n) for n in range(2)]
            broker.topics["orders"] = 3
            assert len(await consumer.queues("orders")) == 3
            with pytest.raises(RouteNotFound):
                await consumer.queues("nothing")

    play(main)


def test_a_pull_has_four_results() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            queue = queue_of("orders")
            broker.queue("orders").first = 10
            for tag in "aab":
                broker.put("orders", TAGS=tag)
            found = await consumer.pull(queue, 10, count=2)
            assert found.status is PullStatus.FOUND
            assert [message.queue_offset for message in found.messages] == [10, 11]
            assert (found.next_offset, found.min_offset, found.max_offset) == (12, 10, 13)
            end = await consumer.pull(queue, 13)
            assert (end.status, end.messages, end.next_offset) == (PullStatus.NO_NEW, [], 13)
            below = await consumer.pull(queue, 3)
            assert (below.status, below.next_offset) == (PullStatus.OFFSET_ILLEGAL, 10)
            beyond = await consumer.pull(queue, 99)
            assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 13)
            broker._pull = _none_matched(broker)  # type: ignore[method-assign]
            none = await consumer.pull(queue, 10, tags="z")
            assert (none.status, none.next_offset) == (PullStatus.NO_MATCHED, 13)

    play(main)


def _none_matched(broker: FakeBroker):  # type: ignore[no-untyped-def]
    async def answer(command: object, peer: object):  # type: ignore[no-untyped-def]
        return broker._pulled(broker.queue("orders"), 20, 13)

    return answer


def test_tags_are_compared_themselves_and_told_to_the_broker() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            for tag in "aba":
                broker.put("orders", TAGS=tag)
            pulled = await consumer.pull(queue_of("orders"), 0, tags="a || c")
            assert [message.queue_offset for message in pulled.messages] == [0, 2]
            header = broker.last(PullMessage).read(PullMessage)
            assert header.subscription == "a || c"
            assert header.sys_flag == SUBSCRIPTION

    play(main)


def test_a_blocking_pull_waits_at_the_broker() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            loop = asyncio.get_running_loop()
            began = loop.time()
            empty = await consumer.pull_blocking(queue_of("orders"), 0, wait_ms=5000)
            assert empty.status is PullStatus.NO_NEW
            assert 5 <= loop.time() - began < 6
            waiting = asyncio.ensure_future(consumer.pull_blocking(queue_of("orders"), 0))
            await asyncio.sleep(2)
            broker.put("orders", body="here")
            assert [message.body for message in (await waiting).messages] == [b"here"]
            assert loop.time() - began < 8

    play(main)


def test_offsets_are_committed_only_by_hand() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            queue = queue_of("orders")
            broker.queue("orders").first = 5
            for _ in range(3):
                broker.put("orders")
                await asyncio.sleep(1)
            assert await consumer.committed(queue) is None
            assert await consumer.min_offset(queue) == 5
            assert await consumer.max_offset(queue) == 8
            stored_ms = broker.queue("orders").stored_ms
            assert await consumer.offset_at(queue, stored_ms[1]) == 6
            assert await consumer.offset_at(queue, stored_ms[1] + 1) == 7
            assert await consumer.offset_at(queue, stored_ms[2] + 1) == 8
            await consumer.pull(queue, 5)
            assert await consumer.committed(queue) is None
            await consumer.commit(queue, 7)
            assert await consumer.committed(queue) == 7

    play(main)


def test_a_commit_of_a_group_that_the_broker_does_not_know_makes_it() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            first = iter([26])
            broker.refuse = lambda command, peer: next(first, None) if command.code == 15 else None
            await consumer.commit(queue_of("orders"), 0)
            assert await consumer.committed(queue_of("orders")) == 0

    play(main)


def test_what_a_broker_refuses_is_raised() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            broker.refuse = lambda command, peer: 16 if command.code == 11 else None
            with pytest.raises(NoPermission, match="refused by the test"):
                await consumer.pull(queue_of("orders"), 0)

    play(main)


def test_nonsense_is_refused_at_once() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            queue = queue_of("orders")
            for attempt in (
                consumer.pull(queue, -1),
                consumer.pull(queue, 0, count=0),
                consumer.pull_blocking(queue, 0, wait_ms=60_000),
                consumer.commit(queue, -1),
            ):
                with pytest.raises(UsageError):
                    await attempt
        with pytest.raises(ClosedError):
            await consumer.pull(queue, 0)
        with pytest.raises(ConfigError):
            PullConfig(hold_ms=30_000)

    play(main)


def test_clients_of_one_world_share_connections_until_the_last_leaves() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            shared = world()
            clients = [
                PullConsumer(group, nameservers=broker.address, world=shared)
                for group in ("one", "two")
            ]
            for client in clients:
                await client.start()
                await client.pull(queue_of("orders"), 0)
            assert len(broker.peers) == 1
            await clients[0].close()
            await clients[1].pull(queue_of("orders"), 0)
            await clients[1].close()
            await until(lambda: not broker.peers)

    play(main)


def test_what_an_answer_opens_to_is_bounded_and_the_rest_is_pulled_again() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            for _ in range(5):
                broker.put_compressed("orders", OPENED_AT_ONCE_BYTES * 3 // 8)
            broker.put("orders")
            found, counts, at = [], [], 0
            while at < 6:
                pulled = await consumer.pull(queue_of("orders"), at, tags="*")
                counts.append(len(pulled.messages))
                found += [message.queue_offset for message in pulled.messages]
                at = pulled.next_offset
            assert (found, counts) == ([*range(6)], [3, 3])

    play(main)
