"""A static topic in a simulated cluster: its queues move under load, and brokers are killed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict

import pytest

from sprocket import Message, Producer, PushConsumer
from sprocket.admin import static_topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import SprocketError
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import StoredMessage
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

BROKERS, QUEUES, KEYS = 3, 4, 6
MOVES = 4


class Story:
    """One run: what was acknowledged and what was delivered, by key."""

    def __init__(self, network: Network, seed: int, *, kills: bool) -> None:
        self.cluster = Cluster(network, seed, brokers=BROKERS)
        self.entropy = SeededEntropy(f"static {seed}")
        self.kills = kills
        self.sent: dict[str, list[int]] = defaultdict(list)
        self.got: dict[str, list[int]] = defaultdict(list)
        self.is_over = False

    async def run(self) -> None:
        cluster = self.cluster
        await cluster.start()
        pool = Pool()
        caller = Caller(pool, cluster.nameserver_addresses, timeout_ms=3_000)
        await static_topics.create(caller, "T", queues=QUEUES, brokers=(), now_ms=1)
        members = [cluster.client(f"member-{number}") for number in range(2)]
        consuming = [
            asyncio.ensure_future(process.run(self.consume(world))) for process, world in members
        ]
        process, world = cluster.client("producer")
        producing = asyncio.ensure_future(process.run(self.produce(world)))
        for _ in range(MOVES):
            await asyncio.sleep(3 + self.entropy.below(5))
            await self.move(caller)
        await asyncio.sleep(5)
        self.is_over = True
        await producing
        await asyncio.sleep(90)
        for task in consuming:
            task.cancel()
        await asyncio.gather(*consuming, return_exceptions=True)
        await pool.close()
        await cluster.stop()

    async def move(self, caller: Caller) -> None:
        names = [f"broker-{number}" for number in range(BROKERS)]
        targets = [name for name in names if self.entropy.below(2)] or names[:1]
        killing = asyncio.ensure_future(self.kill()) if self.kills else None
        try:
            await static_topics.move_queues(caller, "T", brokers=targets, now_ms=1)
        except SprocketError:
            while True:
                await asyncio.sleep(1)
                with contextlib.suppress(SprocketError):
                    await static_topics.finish(caller, "T")
                    break
        if killing is not None:
            await killing

    async def kill(self) -> None:
        await asyncio.sleep(self.entropy.below(100) / 1000)
        machine = self.cluster.brokers[self.entropy.below(BROKERS)]
        machine.kill()
        await asyncio.sleep(1 + self.entropy.below(4))
        await machine.start()

    async def produce(self, world: object) -> None:
        async with Producer(
            "p",
            nameservers=self.cluster.nameserver_addresses,
            world=world,  # type: ignore[arg-type]
        ) as producer:
            await asyncio.gather(*(self.send_all(producer, f"k{n}") for n in range(KEYS)))

    async def send_all(self, producer: Producer, key: str) -> None:
        number = 0
        while not self.is_over:
            message = Message("T", f"{key} {number}".encode())
            with contextlib.suppress(SprocketError):
                await producer.send(message, key=key)
                self.sent[key].append(number)
                number += 1
            await asyncio.sleep(0.05 + self.entropy.below(100) / 1000)

    async def consume(self, world: object) -> None:
        config = ConsumerConfig(commit_ms=1_000)
        async with PushConsumer(
            "g", nameservers=self.cluster.nameserver_addresses, config=config,
            ordered=True, start="first", world=world,  # type: ignore[arg-type]
        ) as consumer:  # fmt: skip
            consumer.subscribe("T", listener=self.note)
            await asyncio.sleep(100_000)

    async def note(self, message: StoredMessage) -> None:
        key, number = message.body.decode().split()
        assert message.queue.broker == "__syslo__global__"
        self.got[key].append(int(number))


@pytest.mark.parametrize("seed", range(2))
def test_queues_move_under_load_and_each_message_comes_once_in_order(seed: int) -> None:
    async def main(network: Network) -> Story:
        story = Story(network, seed, kills=False)
        await story.run()
        return story

    story = simulate(main)
    assert story.got == story.sent
    assert sum(map(len, story.sent.values())) > 400


@pytest.mark.parametrize("seed", [0, 2])
def test_brokers_that_are_killed_during_moves_lose_nothing(seed: int) -> None:
    async def main(network: Network) -> Story:
        story = Story(network, seed, kills=True)
        await story.run()
        return story

    story = simulate(main)
    for key, numbers in story.sent.items():
        firsts = list(dict.fromkeys(story.got[key]))
        assert set(numbers) <= set(firsts), key
        assert firsts == sorted(firsts), key


def test_a_queue_that_moves_is_no_trouble_to_report(caplog: pytest.LogCaptureFixture) -> None:
    async def main(network: Network) -> None:
        await Story(network, 1, kills=False).run()

    with caplog.at_level("WARNING"):
        simulate(main)
    assert not [each for each in caplog.messages if "501" in each]
