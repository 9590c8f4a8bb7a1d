"""Push consumers that pop: renewal, limits, losses, ends. See also the simulated histories."""

from __future__ import annotations

import asyncio
from typing import Any

from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.queue import QueueId
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible, PopMessage
from tests.client import fakes
from tests.client.fakes import FakeBroker, until
from tests.client.pop_cluster import TOPIC, PopCluster, play
from tests.client.test_simple_consumer import popped


class Listener:
    """Keeps what it gets; waits if told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.got: list[Any] = []
        self.running = 0
        self.most = 0

    async def __call__(self, message: Any) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.got.append((message.body, message.reconsume_times))
        await asyncio.sleep(self.seconds)
        self.running -= 1

    @property
    def bodies(self) -> list[bytes]:
        return [body for body, _ in self.got]


def test_messages_are_delivered_and_acknowledged_together() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(*(b"%d" % n for n in range(50)))
        listener = Listener()
        consumer = await pops.push(listener)
        await until(lambda: len(listener.got) == 50)
        assert QueueId(TOPIC, "broker-0", -1) in consumer.queues
        await pops.send(b"fresh")
        await until(lambda: len(listener.got) == 51, seconds=0.2)
        await asyncio.sleep(90)
        assert len(listener.got) == 51, "all were acknowledged"
        assert consumer.statistics().topics[TOPIC].consumed == 51

    play(main)


def test_a_long_listener_keeps_its_message_for_as_long_as_it_takes() -> None:
    async def main(pops: PopCluster) -> None:
        listener = Listener(47.0)
        await pops.push(listener, invisible_ms=4_000, concurrency=2)
        other = Listener()
        await pops.push(other, name="other", invisible_ms=4_000)
        await pops.send(*(b"%d" % n for n in range(4)))
        await asyncio.sleep(150)
        assert sorted(listener.bodies + other.bodies) == [b"0", b"1", b"2", b"3"]
        assert listener.got, "it had its share"

    play(main)


def test_a_member_that_dies_loses_nothing() -> None:
    async def main(pops: PopCluster) -> None:
        dying = await pops.push(Listener(1000.0), name="dying", invisible_ms=5_000)
        await pops.send(*(b"%d" % n for n in range(6)))
        await asyncio.sleep(2.0)
        listener = Listener()
        await pops.push(listener, name="heir")
        await asyncio.sleep(30.0)
        assert listener.got == []
        await pops.kill(dying)
        await until(lambda: len(listener.got) == 6, seconds=15.0)
        assert {times for _, times in listener.got} == {1}

    play(main)


def test_popping_stops_at_the_limit_of_unfinished_messages() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(*(b"%d" % n for n in range(40)))
        listener = Listener(1.0)
        consumer = await pops.push(listener, pop_unfinished_max=10, concurrency=5)
        held = 0
        for _ in range(40):
            await asyncio.sleep(0.25)
            windows = consumer.statistics().windows
            held = max(held, sum(each.waiting + each.in_flight for each in windows))
        assert held == 10
        assert listener.most == 5
        await until(lambda: len(listener.got) == 40)
        assert consumer.statistics().topics[TOPIC].throttled["count"] > 0

    play(main)


def test_closing_gives_what_was_not_started_to_others_at_once() -> None:
    async def main(pops: PopCluster) -> None:
        first = Listener(3.0)
        consumer = await pops.push(first, concurrency=2, invisible_ms=600_000)
        await pops.send(*(b"%d" % n for n in range(8)))
        await asyncio.sleep(1.0)
        second = Listener()
        await pops.close(consumer)
        assert len(first.got) == 2, "the listeners that ran have ended, and no other began"
        await pops.push(second, name="second")
        await until(lambda: len(second.got) == 6, seconds=10.0)
        await asyncio.sleep(20)
        assert len({*first.bodies, *second.bodies}) == 8
        assert len(second.got) == 6

    play(main)


def test_in_order_a_queue_goes_on_behind_a_failure_only_after_it() -> None:
    async def main(pops: PopCluster) -> None:
        got: list[tuple[int, bytes, int]] = []

        async def listen(message: Any) -> Any:
            got.append((message.queue.number, message.body, message.reconsume_times))
            return Later() if message.body == b"2" and message.reconsume_times < 3 else None

        await pops.push(listen, ordered=True, invisible_ms=4_000, suspend_ms=2_000)
        await pops.send(*(b"%d" % n for n in range(6)), key="one queue")
        await until(lambda: len(got) == 9)
        assert [body for _, body, _ in got] == [b"0", b"1", *[b"2"] * 4, b"3", b"4", b"5"]
        assert [times for _, body, times in got if body == b"2"] == [0, 1, 2, 3]
        await asyncio.sleep(20)
        assert len(got) == 9

    play(main)


def test_in_order_two_members_never_have_one_queue_and_a_dead_one_gives_it_up() -> None:
    async def main(pops: PopCluster) -> None:
        running: dict[int, str] = {}
        done: list[tuple[int, bytes]] = []

        def member(name: str) -> Any:
            async def listen(message: Any) -> None:
                number = message.queue.number
                assert running.setdefault(number, name) == name
                await asyncio.sleep(0.4)
                done.append((number, message.body))
                running.pop(number, None)

            return listen

        one = await pops.push(member("one"), name="one", ordered=True, invisible_ms=5_000)
        await pops.push(member("two"), name="two", ordered=True, invisible_ms=5_000)
        for number in range(30):
            await pops.send(b"%02d" % number, key=number % 4)
        await asyncio.sleep(1.0)
        await pops.kill(one)
        running = {number: name for number, name in running.items() if name == "two"}
        await until(lambda: len({body for _, body in done}) == 30)
        for queue in {number for number, _ in done}:
            bodies = [body for number, body in done if number == queue]
            assert list(dict.fromkeys(bodies)) == sorted(set(bodies))

    play(main, queues=4)


def test_what_cannot_be_renewed_is_not_delivered_any_more() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            stored = [broker.put("orders", body=str(n)) for n in range(3)]
            replies = [popped(broker, *stored, invisible_time=4_000)]

            def pop(command: Command, peer: Any) -> Any:
                return replies.pop() if replies else asyncio.sleep(9, Reply(code=210))

            broker.more[PopMessage.code] = pop
            broker.more[AckMessage.code] = lambda c, p: Reply()
            broker.more[ChangeInvisible.code] = lambda c, p: Reply(code=208, remark="gone")
            listener = Listener(3.5)
            pushing = popping_consumer(broker, listener)
            async with pushing:
                await asyncio.sleep(20)
                assert listener.bodies == [b"0"], "the others are somebody else's"
                assert broker.count(AckMessage) == 0
                assert pushing.statistics().windows[0].waiting == 0

    fakes.play(main)


def popping_consumer(broker: FakeBroker, listener: Any) -> PushConsumer:
    consumer = PushConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        mode="pop",
        config=ConsumerConfig(invisible_ms=4_000, concurrency=1),
        world=fakes.world(),
    )
    consumer.subscribe("orders", listener=listener)
    return consumer
