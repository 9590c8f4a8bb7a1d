from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import Assignment, AssignmentBody, Queue, RequestMode
from sprocket.protocol.command import Reply
from sprocket.protocol.requests.group import QueryAssignment, SetRequestMode
from sprocket.protocol.requests.pop import PopMessage
from sprocket.protocol.requests.pull import PullMessage
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT
from tests.client import fakes
from tests.client.fakes import FakeBroker, until
from tests.client.pop_cluster import GROUP, TOPIC, PopCluster, play
from tests.client.popping.test_pop_feed import Listener


async def set_mode(pops: PopCluster, mode: str, shared: int = 0) -> None:
    body = RequestMode(
        consumer_group=GROUP, mode=mode, pop_share_queue_num=shared, topic=TOPIC
    ).encode()
    async with Pool() as pool:
        for broker in pops.cluster.brokers:
            address = f"{broker.address}:{BROKER_PORT}"
            deadline = Deadline.after(5)
            await pool.ask(address, SetRequestMode(), body=body, deadline=deadline)


def test_a_group_pulls_or_pops_as_operators_set_it_while_it_runs() -> None:
    async def main(pops: PopCluster) -> None:
        listeners = [Listener(), Listener()]
        settings = {"mode": "broker", "rebalance_ms": 1_000}
        one = await pops.push(listeners[0], name="one", **settings)
        two = await pops.push(listeners[1], name="two", **settings)
        sent = 0

        async def send(count: int) -> None:
            nonlocal sent
            await pops.send(*(b"%d" % (sent + n) for n in range(count)))
            sent += count

        def came() -> int:
            return len({body for each in listeners for body in each.bodies})

        await until(lambda: len(one.queues) + len(two.queues) == 4 + 2)
        await send(20)
        await until(lambda: came() == 20)
        assert {queue.number for queue in one.queues + two.queues} == {0, 1}
        await set_mode(pops, "POP")
        await until(lambda: QueueId(TOPIC, "broker-1", -1) in one.queues)
        await until(lambda: QueueId(TOPIC, "broker-0", -1) in two.queues)
        await send(20)
        await until(lambda: came() == 40)
        await set_mode(pops, "PULL")
        await until(lambda: {queue.number for queue in one.queues + two.queues} == {0, 1})
        await send(20)
        await until(lambda: came() == 60)
        await asyncio.sleep(70)
        assert came() == 60, "what a change of the mode leaves may come twice"

    play(main, brokers=2)


def test_a_member_pops_single_queues_if_the_broker_says_so() -> None:
    async def main(pops: PopCluster) -> None:
        listeners = [Listener() for _ in range(4)]
        consumers = [
            await pops.push(each, name=f"m{n}", mode="broker", rebalance_ms=1_000)
            for n, each in enumerate(listeners)
        ]
        await set_mode(pops, "POP", shared=1)
        popped = [lambda c=each: _tasks(c.queues) for each in consumers]
        await until(lambda: all(len(each()) == 2 for each in popped))
        assert {queue for each in popped for queue in each()} == {
            QueueId(TOPIC, "broker-0", number) for number in range(4)
        }
        await pops.send(*(b"%d" % n for n in range(20)))
        await until(lambda: sum(len(each.got) for each in listeners) == 20)

    play(main, queues=4)


def _tasks(queues: list[QueueId]) -> list[QueueId]:
    return [queue for queue in queues if queue.topic == TOPIC]


def consumer_of(broker: FakeBroker, listener: Any, **named: Any) -> PushConsumer:
    consumer = PushConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        world=fakes.world(),
        config=ConsumerConfig(rebalance_ms=1_000),
        **{"mode": "broker", **named},
    )
    consumer.subscribe("orders", listener=listener)
    return consumer


def test_a_broker_that_assigns_nothing_leaves_it_to_the_members(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker:
            broker.refuse = lambda c, p: 3 if c.code == QueryAssignment.code else None
            broker.put("orders", body="x")
            listener = Listener()
            async with consumer_of(broker, listener):
                await until(lambda: listener.got)
            assert broker.count(PopMessage) == 0

    fakes.play(main)
    assert caplog.text.count("assigns no queues") == 1


@pytest.mark.parametrize("assignments", [None, [("others", "POP")], [("orders", "NONSENSE")]])
def test_strange_assignments_break_nothing(assignments: Any) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            found = (
                None
                if assignments is None
                else [
                    Assignment(message_queue=Queue("broker-a", 0, topic), mode=mode)
                    for topic, mode in assignments
                ]
            )
            body = AssignmentBody(message_queue_assignments=found).encode()
            broker.more[QueryAssignment.code] = lambda c, p: Reply(body=body)
            async with consumer_of(broker, Listener()) as consumer:
                await asyncio.sleep(5.0)
                assert broker.count(QueryAssignment) > 3
                assert broker.count(PopMessage) == 0
                is_pulled = assignments == [("orders", "NONSENSE")]
                assert (broker.count(PullMessage) > 0) == is_pulled
                assert bool(consumer.queues) == is_pulled

    fakes.play(main)


def test_a_broker_that_does_not_pop_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.refuse = lambda c, p: 3 if c.code == PopMessage.code else None
            async with consumer_of(broker, Listener(), mode="pop"):
                await asyncio.sleep(20.0)
            assert broker.count(PopMessage) < 20

    fakes.play(main)
    assert "does not know pop consumption" in caplog.text
