"""Producers that send and a consumer group that consumes, at a pace drawn from a seed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from sprocket.base.errors import SprocketError
from sprocket.client.consumer import Later, PushConsumer
from sprocket.client.producer import Producer
from sprocket.client.world import World
from sprocket.message.message import Message, StoredMessage
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.process import Process

TOPIC = "orders"
GROUP = "workers"
QUEUES = 4

#: Sends of one producer that are under way at the same time.
_LANES = 3
_BATCH_MAX = 4
_BODY_BYTES_MAX = 700
_MEMBERS_MAX = 4
#: How often a listener gives a message back at most; the pauses in between grow.
_GIVEN_BACK_MAX = 3


@dataclass(frozen=True, slots=True)
class Habits:
    """How clients behave.

    Attributes:
        batches: how probable it is that a producer sends several messages at once.
        failures: how probable it is that a listener gives a message back.
        listener_seconds: how long a listener takes at most.
    """

    batches: float = 0.1
    failures: float = 0.0
    listener_seconds: float = 0.2


class Workload:
    """The clients of a simulated run, one process and host each.

    Args:
        cluster: what they talk to.
        journal: is told of all they do.
        entropy: decides what and when.
        habits: how they behave.
    """

    def __init__(
        self, cluster: Cluster, journal: Journal, *, entropy: SeededEntropy, habits: Habits
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self._habits = habits
        self._producers: list[Process] = []
        self._members: list[_Member] = []
        self._joined = 0

    @property
    def hosts(self) -> list[str]:
        """Where clients run."""
        return [process.host for process in self._producers] + [m.name for m in self._members]

    def produce(self, name: str, count: int, *, seconds: float) -> Awaitable[None]:
        """Sends `count` messages in about `seconds`; done when each was answered or failed."""
        process, world = self._cluster.client(name)
        self._producers.append(process)
        entropy = self._entropy.fork(name)
        keys = iter([f"{name}-{number}" for number in range(count)])
        pause = 2 * seconds * _LANES / count

        async def lane(producer: Producer) -> None:
            for key in keys:
                await asyncio.sleep(entropy.between(0, pause))
                batch = [key]
                if entropy.happens(self._habits.batches):
                    more = 1 + entropy.below(_BATCH_MAX - 1)
                    batch += [following for _, following in zip(range(more), keys, strict=False)]
                await self._send(producer, batch, entropy)

        async def main() -> None:
            servers = self._cluster.nameserver_addresses
            async with Producer(name, nameservers=servers, world=world) as producer:
                await asyncio.gather(*(lane(producer) for _ in range(_LANES)))

        return process.start(main())

    async def _send(self, producer: Producer, keys: Sequence[str], entropy: SeededEntropy) -> None:
        who, messages = producer.group, []
        for key in keys:
            body = entropy.token(entropy.below(_BODY_BYTES_MAX) + 1)
            self._journal.sending(who, key, body)
            messages.append(Message(TOPIC, body, keys=[key]))
        try:
            if len(messages) == 1:
                answers = [await producer.send(messages[0])]
            else:
                answers = await producer.send_batch(messages)
        except SprocketError as error:
            cause = error.__cause__ or error
            for key in keys:
                self._journal.note(who, f"fails with {type(cause).__name__} for", key)
            return
        for key, sent in zip(keys, answers, strict=True):
            self._journal.acknowledge(who, key, sent.queue, sent.queue_offset)

    async def join(self) -> None:
        """One more member consumes, unless there are many."""
        if len(self._members) >= _MEMBERS_MAX:
            return
        name = f"member-{self._joined}"
        self._joined += 1
        process, world = self._cluster.client(name)
        member = _Member(name, process, self._journal, self._entropy.fork(name), self._habits)
        self._journal.note(name, "joins")
        self._members.append(member)
        member.start(self._cluster.nameserver_addresses, world)

    async def leave(self) -> None:
        """A member leaves in order, unless it is the last."""
        if len(self._members) > 1:
            member = self._members.pop(self._entropy.below(len(self._members)))
            self._journal.note(member.name, "leaves")
            await member.leave()

    async def kill_member(self) -> None:
        """A member's process ends where it stands, unless it is the last."""
        if len(self._members) > 1:
            member = self._members.pop(self._entropy.below(len(self._members)))
            self._journal.note(member.name, "is killed")
            self._cluster.network.kill(member.process)
            member.process.kill()

    async def close(self) -> None:
        """All members leave in order."""
        await asyncio.gather(*(member.leave() for member in self._members))


class _Member:
    """One consumer of the group."""

    def __init__(
        self,
        name: str,
        process: Process,
        journal: Journal,
        entropy: SeededEntropy,
        habits: Habits,
    ) -> None:
        self.name = name
        self.process = process
        self._journal = journal
        self._entropy = entropy
        self._habits = habits
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, nameservers: list[str], world: World) -> None:
        consumer = PushConsumer(GROUP, nameservers=nameservers, start="first", world=world)
        consumer.on(TOPIC)(self._consume)
        self._task = self.process.start(self._main(consumer))

    async def leave(self) -> None:
        self._leaving.set()
        assert self._task is not None
        await self._task

    async def _main(self, consumer: PushConsumer) -> None:
        async with consumer:
            await self._leaving.wait()

    async def _consume(self, message: StoredMessage) -> Later | None:
        self._journal.deliver(self.name, message)
        await asyncio.sleep(self._entropy.between(0.0, self._habits.listener_seconds))
        wants_it_again = self._entropy.happens(self._habits.failures)
        if wants_it_again and message.reconsume_times < _GIVEN_BACK_MAX:
            self._journal.give_back(self.name, message)
            return Later()
        self._journal.finish(self.name, message)
        return None
