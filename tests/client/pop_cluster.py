"""A simulated cluster with a sender and consumers that pop, each a process on a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ConsumerConfig
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.message.message import Message
from sprocket.message.popped_message import PoppedMessage
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.process import SimulatedProcess

TOPIC, GROUP = "tasks", "workers"
T = TypeVar("T")


class PopCluster:
    """`play(main)` starts it and stops it."""

    def __init__(self, network: Network, *, brokers: int, queues: int, slaves: int) -> None:
        self.network = network
        config = BrokerConfig(registration_ms=2_000)
        self.cluster = Cluster(network, "pops", brokers=brokers, slaves=slaves, broker=config)
        self.queues = queues
        self._open: list[tuple[SimulatedProcess, Any]] = []

    async def begin(self) -> None:
        await self.cluster.start()
        observer = Observer(self.cluster, TOPIC, self.queues, group=GROUP)
        await observer.create_topic()
        await observer.close()
        await asyncio.sleep(3.0)
        self._sending, world = self.cluster.client("sender")
        self.producer = Producer("p", nameservers=self.servers, world=world)
        await self._sending.run(self.producer.start())

    @property
    def servers(self) -> list[str]:
        return self.cluster.nameserver_addresses

    async def send(self, *bodies: bytes, topic: str = TOPIC, **named: Any) -> None:
        """Sends messages; `key` goes to the send, all else to the message."""
        key = named.pop("key", None)
        for body in bodies:
            message = Message(topic, body, **named)
            await self._sending.run(self.producer.send(message, key=key, timeout_ms=20_000))

    async def simple(self, name: str = "one", **settings: Any) -> Simple:
        process, world = self.cluster.client(name)
        consumer = SimpleConsumer(
            GROUP,
            nameservers=self.servers,
            start="first",
            world=world,
            config=SimpleConfig(**settings),
        )
        consumer.subscribe(TOPIC)
        await process.run(consumer.start())
        self._open.append((process, consumer))
        return Simple(process, consumer)

    async def push(
        self, listener: Callable[[Any], Awaitable[Any]], name: str = "one", **named: Any
    ) -> PushConsumer:
        """Starts a push consumer; keywords of `PushConsumer`, and settings."""
        process, world = self.cluster.client(name)
        own = {each: named.pop(each) for each in ("mode", "ordered", "start") if each in named}
        batch = named.pop("batch", None)
        consumer = PushConsumer(
            GROUP,
            nameservers=self.servers,
            world=world,
            config=ConsumerConfig(route_refresh_ms=2_000, **named),
            **{"mode": "pop", "start": "first", **own},
        )
        consumer.subscribe(TOPIC, listener=listener, batch=batch)
        await process.run(consumer.start())
        self._open.append((process, consumer))
        return consumer

    async def close(self, consumer: Any) -> None:
        for process, each in self._open:
            if each is consumer:
                await process.run(each.close())
        self._open = [pair for pair in self._open if pair[1] is not consumer]

    async def kill(self, consumer: Any) -> None:
        for process, each in self._open:
            if each is consumer:
                self.network.kill(process)
                process.kill()
        self._open = [pair for pair in self._open if pair[1] is not consumer]

    async def end(self) -> None:
        for _, consumer in list(self._open):
            await self.close(consumer)
        await self._sending.run(self.producer.close())
        await self.cluster.stop()


class Simple:
    """A simple consumer whose methods run in its process."""

    def __init__(self, process: SimulatedProcess, consumer: SimpleConsumer) -> None:
        self.process = process
        self.consumer = consumer

    async def receive(self, count: int = 32, **named: Any) -> list[PoppedMessage]:
        return await self.process.run(self.consumer.receive(count, **named))

    async def ack(self, messages: Any) -> None:
        await self.process.run(self.consumer.ack(messages))

    async def hide(self, message: PoppedMessage, invisible_ms: int) -> None:
        await self.process.run(self.consumer.change_invisible_time(message, invisible_ms))

    async def bury(self, message: PoppedMessage) -> None:
        await self.process.run(self.consumer.forward_to_dead_letters(message))


def play(
    main: Callable[[PopCluster], Coroutine[Any, Any, T]],
    *,
    brokers: int = 1,
    queues: int = 2,
    slaves: int = 0,
) -> T:
    """Runs a test in virtual time."""

    async def on_network(network: Network) -> T:
        cluster = PopCluster(network, brokers=brokers, queues=queues, slaves=slaves)
        await cluster.begin()
        result = await main(cluster)
        await cluster.end()
        return result

    return simulate(on_network)
