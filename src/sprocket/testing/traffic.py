"""Producers of a simulated run. Each is a client in a process of its own; a seed sets its pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from sprocket.base.errors import SprocketError
from sprocket.client.producer import Producer
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.process import SimulatedProcess

#: Concurrent sends of one producer.
_LANES = 3
_BATCH_MAX = 4
_BODY_BYTES_MAX = 700
#: Number of failures of a message that always fails.
ALWAYS = 1_000


@dataclass(frozen=True, slots=True)
class Traffic:
    """What producers send.

    Attributes:
        topics, queues: the topics, and the number of queues of each on each broker.
        producers, messages: number of producers, and of messages of each.
        seconds: about how long they send.
        batches: probability that several messages are sent in a batch.
        keeps_batches: whether the topics keep each batch as one record.
        delayed: probability that a message has a delay level.
        failures: probability that listeners fail for a message once or twice.
        poison: probability that they always fail for it.
    """

    topics: tuple[str, ...] = ("orders",)
    queues: int = 4
    producers: int = 2
    messages: int = 25
    seconds: float = 20.0
    batches: float = 0.1
    keeps_batches: bool = False
    delayed: float = 0.0
    failures: float = 0.0
    poison: float = 0.0


class SimulatedProducers:
    """All producers of a run.

    Args:
        cluster: the cluster to which they send.
        journal: records all sends.
        traffic: what they send.
        entropy: decides the times, and which messages fail later.

    Attributes:
        running: processes that neither ended nor were killed.
    """

    def __init__(
        self, cluster: Cluster, journal: Journal, traffic: Traffic, *, entropy: SeededEntropy
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._traffic = traffic
        self._entropy = entropy
        self.running: list[SimulatedProcess] = []

    def send_all(self) -> list[Awaitable[None]]:
        """An awaitable for each, done when its last send has a reply or has failed, or it dies."""
        return [self._produce(f"producer-{n}") for n in range(self._traffic.producers)]

    async def send_one_to_each(self, brokers: Sequence[str]) -> None:
        """Sends one more message to each topic on each broker until all are acknowledged."""
        process, world = self._cluster.client("prober")
        servers = self._cluster.nameserver_addresses

        async def send(producer: Producer, queue: QueueId) -> None:
            key, body = f"prober-{queue.topic}-{queue.broker}", b"still there?"
            while key not in self._journal.acknowledged:
                self._journal.sending("prober", key, body)
                try:
                    sent = await producer.send(Message(queue.topic, body, keys=[key]), queue=queue)
                except SprocketError as error:
                    self._journal.note("prober", f"fails with {type(error).__name__} for", key)
                    await asyncio.sleep(1.0)
                else:
                    self._journal.acknowledge("prober", key, sent.queue, sent.queue_offset)

        async def main() -> None:
            async with Producer("prober", nameservers=servers, world=world) as producer:
                for topic in self._traffic.topics:
                    for broker in brokers:
                        await send(producer, QueueId(topic, broker, 0))

        await process.run(main())

    async def kill_one(self) -> None:
        """Kills one of them."""
        if self.running:
            process = self.running.pop(self._entropy.below(len(self.running)))
            self._journal.note(process.name, "is killed")
            self._cluster.network.kill(process)
            process.kill()

    async def _produce(self, name: str) -> None:
        process, world = self._cluster.client(name)
        self.running.append(process)
        entropy = self._entropy.fork(name)
        traffic = self._traffic
        keys = iter([f"{name}-{number}" for number in range(traffic.messages)])
        pause = 2 * traffic.seconds * _LANES / traffic.messages

        async def lane(producer: Producer) -> None:
            for key in keys:
                await asyncio.sleep(entropy.between(0, pause))
                batch = [key]
                if entropy.happens(traffic.batches):
                    more = 1 + entropy.below(_BATCH_MAX - 1)
                    batch += [following for _, following in zip(range(more), keys, strict=False)]
                await self._send(producer, batch, entropy)

        async def main() -> None:
            servers = self._cluster.nameserver_addresses
            async with Producer(name, nameservers=servers, world=world) as producer:
                await asyncio.gather(*(lane(producer) for _ in range(_LANES)))

        task = process.start(main())
        await asyncio.wait([task])
        if process in self.running:
            self.running.remove(process)
            await task

    async def _send(self, producer: Producer, keys: Sequence[str], entropy: SeededEntropy) -> None:
        who, journal, traffic = producer.group, self._journal, self._traffic
        topic = traffic.topics[entropy.below(len(traffic.topics))]
        messages = []
        for key in keys:
            body = entropy.token(entropy.below(_BODY_BYTES_MAX) + 1)
            draw = entropy.random()
            if draw < traffic.poison:
                journal.failures[key] = ALWAYS
            elif draw < traffic.poison + traffic.failures:
                journal.failures[key] = 1 + entropy.below(2)
            level = 1 + entropy.below(5) if entropy.happens(traffic.delayed) else 0
            if level and len(keys) == 1:
                journal.levels[key] = level
            journal.sending(who, key, body)
            messages.append(
                Message(topic, body, keys=[key], delay_level=journal.levels.get(key, 0))
            )
        try:
            if len(messages) == 1:
                answers = [await producer.send(messages[0])]
            else:
                answers = await producer.send_batch(messages)
        except SprocketError as error:
            cause = error.__cause__ or error
            for key in keys:
                journal.note(who, f"fails with {type(cause).__name__} for", key)
            return
        for key, sent in zip(keys, answers, strict=True):
            journal.acknowledge(who, key, sent.queue, sent.queue_offset)
