from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.assign import ConsistentHash
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from tests.client.fakes import until
from tests.client.pop_cluster import TOPIC, PopCluster, play
from tests.client.popping.test_pop_feed import Listener
from tests.client.test_simple_consumer import is_wanted


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"mode": "push"}, "mode is pull, pop, broker"),
        ({"mode": "pop", "broadcasting": True}, "broadcasting"),
        ({"mode": "broker", "broadcasting": True}, "broadcasting"),
        ({"mode": "pop", "start": 5_000_000_000_000}, "'first' or 'last'"),
        ({"mode": "broker", "config": ConsumerConfig(assign=ConsistentHash())}, "AVG"),
    ],
)
def test_what_does_not_go_together_is_refused(named: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        PushConsumer("g", nameservers="a:1", **named)


def test_filters_in_python_do_not_pop() -> None:
    with pytest.raises(UsageError, match="Python"):
        PushConsumer("g", nameservers="a:1", mode="pop").subscribe("t", code=is_wanted)


def test_a_consumer_that_pops_may_be_iterated_over_and_change_its_subscriptions() -> None:
    async def main(pops: PopCluster) -> None:
        process, world = pops.cluster.client("loop")
        consumer = PushConsumer(
            "loopers", nameservers=pops.servers, world=world, mode="pop", start="first"
        )

        async def loop() -> list[bytes]:
            got: list[bytes] = []
            async with consumer:
                consumer.subscribe(TOPIC)
                async for message in consumer:
                    got.append(message.body)
                    if len(got) == 3:
                        consumer.later(message, 2)
                    if len(got) == 6:
                        break
            return got

        await pops.send(*(b"%d" % n for n in range(5)))
        got = await process.run(loop())
        assert len(set(got)) == 5
        assert got.count(got[2]) == 2

    play(main)


def test_an_unsubscribed_topic_is_popped_no_more_and_a_paused_one_waits() -> None:
    async def main(pops: PopCluster) -> None:
        listener = Listener()
        consumer = await pops.push(listener, rebalance_ms=1_000, hold_ms=1_000)
        await pops.send(b"1")
        await until(lambda: listener.bodies == [b"1"])
        consumer.pause(TOPIC)
        await asyncio.sleep(2.0)
        await pops.send(b"2")
        await asyncio.sleep(5.0)
        assert listener.bodies == [b"1"]
        consumer.resume()
        await until(lambda: listener.bodies == [b"1", b"2"])
        consumer.unsubscribe(TOPIC)
        await until(lambda: TOPIC not in {queue.topic for queue in consumer.queues})
        await pops.send(b"3")
        await asyncio.sleep(5.0)
        assert listener.bodies == [b"1", b"2"]

    play(main)


def test_new_brokers_are_popped_and_statistics_name_them() -> None:
    async def main(pops: PopCluster) -> None:
        late = pops.cluster.brokers[1]
        await late.stop()
        listener = Listener()
        consumer = await pops.push(listener, rebalance_ms=1_000)
        await pops.send(b"1")
        await until(lambda: listener.got)
        await late.start()
        await until(lambda: len([q for q in consumer.queues if q.topic == TOPIC]) == 2)
        await asyncio.sleep(31.0)  # until the producer knows the broker too
        for number in range(8):
            await pops.send(b"more %d" % number)
        await until(lambda: len(listener.got) == 9)
        windows = {window.queue.broker for window in consumer.statistics().windows}
        assert windows == {"broker-0", "broker-1"}

    play(main, brokers=2)
