"""Members of simulated consumer groups. Each is a client in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sprocket.base.errors import SprocketError
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ConsumerConfig, LitePullConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.push_consumer import Later, PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.groups import Call, GroupRecord
from sprocket.testing.journal import Journal
from sprocket.testing.process import SimulatedProcess

#: Probability that a listener takes far longer than usual.
_SLOW = 0.02
_POLL_MS = 1_000


@dataclass(frozen=True, slots=True)
class Style:
    """How a group consumes.

    Attributes:
        name: the group's name.
        kind: `concurrent`, `ordered`, `broadcasting`, `lite` (subscribes) or `assigned`.
        topics: the topics that it consumes.
        members: their number at the start.
        reconsume_max: most tries after the first.
        listener_seconds: the longest usual time of a listener.
        slow_seconds: the longest time of a slow call.
        batch: most messages in a call of a listener; None for one.
        auto_commit: whether the client commits for lite pull consumers.
        seeks: whether consumers of assigned queues sometimes seek backwards.
    """

    name: str = "workers"
    kind: str = "concurrent"
    topics: tuple[str, ...] = ("orders",)
    members: int = 2
    reconsume_max: int = 2
    listener_seconds: float = 0.2
    slow_seconds: float = 0.0
    batch: int | None = None
    auto_commit: bool = True
    seeks: bool = True

    @property
    def has_identities(self) -> bool:
        """Whether a new member replaces a dead one with the same name and disk."""
        return self.kind in ("broadcasting", "assigned")

    @property
    def is_shared(self) -> bool:
        """Whether each queue has one member that owns it."""
        return self.kind in ("concurrent", "ordered", "lite")


class MemberEnvironment:
    """What a member gets from its cluster.

    Args:
        process: the process in which it runs.
        world: the client's `world`.
        nameservers: addresses of the name servers.
        entropy: decides its behaviour.
        queues: all queues of the group's topics, for kind `assigned`.
    """

    def __init__(
        self,
        process: SimulatedProcess,
        world: ClientEnvironment,
        nameservers: list[str],
        *,
        entropy: SeededEntropy,
        queues: Sequence[QueueId],
    ) -> None:
        self.process = process
        self.world = world
        self.nameservers = nameservers
        self.entropy = entropy
        self.queues = queues


class SimulatedMember:
    """One consumer; subclasses implement `_main`."""

    def __init__(
        self,
        name: str,
        place: MemberEnvironment,
        *,
        style: Style,
        journal: Journal,
        record: GroupRecord,
    ) -> None:
        self.name = name
        self.place = place
        self.process = place.process
        self.topics = list(style.topics)
        self._style = style
        self._journal = journal
        self._record = record
        self._entropy = place.entropy
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def queues(self) -> list[QueueId]:
        """The queues that it reads now."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the consumer in its process."""
        self._task = self.process.start(self._main())

    async def leave(self) -> None:
        """Stops the consumer in order."""
        self._leaving.set()
        assert self._task is not None
        await self._task

    async def _main(self) -> None:
        raise NotImplementedError

    def subscribe(self, topic: str) -> None:
        """Subscribes to a topic again."""

    def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic."""

    def _seconds(self) -> float:
        """Draws how long this call of a listener takes."""
        is_slow = self._style.slow_seconds and self._entropy.happens(_SLOW)
        longest = self._style.slow_seconds if is_slow else self._style.listener_seconds
        return self._entropy.between(0.0, longest)


class PushMember(SimulatedMember):
    """A push consumer."""

    def __init__(
        self,
        name: str,
        place: MemberEnvironment,
        *,
        style: Style,
        journal: Journal,
        record: GroupRecord,
    ) -> None:
        super().__init__(name, place, style=style, journal=journal, record=record)
        self.consumer = PushConsumer(
            style.name,
            nameservers=place.nameservers,
            start="first",
            ordered=style.kind == "ordered",
            broadcasting=style.kind == "broadcasting",
            config=ConsumerConfig(
                reconsume_max=style.reconsume_max,
                instance=name if style.has_identities else None,
                offsets_folder="/offsets",
            ),
            world=place.world,
        )
        for topic in style.topics:
            self.subscribe(topic)

    @property
    def queues(self) -> list[QueueId]:
        """Queues that it reads now."""
        return self.consumer.queues

    def subscribe(self, topic: str) -> None:
        """Takes a topic up again."""
        if self._style.batch is None:
            self.consumer.on(topic)(self._consume)
        else:
            self.consumer.on(topic, batch=self._style.batch)(self._consume_many)

    def unsubscribe(self, topic: str) -> None:
        """Gives a topic up for now."""
        self.consumer.unsubscribe(topic)

    async def _main(self) -> None:
        async with self.consumer:
            await self._leaving.wait()

    async def _consume(self, message: StoredMessage) -> Later | None:
        return await self._consume_many([message])

    async def _consume_many(self, messages: Sequence[StoredMessage]) -> Later | None:
        calls = [self._record.begin(self.name, message) for message in messages]
        try:
            await asyncio.sleep(self._seconds())
        except asyncio.CancelledError:
            for call in calls:
                self._record.gone(call)
            raise
        outcome = self._outcome(calls[0])
        for call in calls:
            is_dead = outcome == "later" and call.times >= self._style.reconsume_max
            self._record.end(call, "dead" if is_dead else outcome)
            if is_dead or outcome == "done" or self._style.kind == "concurrent":
                self._record.settle(call)
        return Later() if outcome == "later" else None

    def _outcome(self, call: Call) -> str:
        if self._style.kind == "broadcasting" or self._style.batch is not None:
            return "done"
        return "later" if call.times < self._journal.failures.get(call.key, 0) else "done"


class LiteMember(SimulatedMember):
    """A lite pull consumer, by subscription or by assignment."""

    def __init__(
        self,
        name: str,
        place: MemberEnvironment,
        *,
        style: Style,
        journal: Journal,
        record: GroupRecord,
    ) -> None:
        super().__init__(name, place, style=style, journal=journal, record=record)
        self.consumer = LitePullConsumer(
            style.name,
            nameservers=place.nameservers,
            start="first",
            config=LitePullConfig(auto_commit=style.auto_commit, poll_batch=8),
            world=place.world,
        )
        self._returned: list[Call] = []
        #: The offset that the next message of a queue must have, where it is known.
        self._next: dict[QueueId, int] = {}
        self._paused: list[QueueId] = []
        self._seeks = style.kind == "assigned" and style.seeks

    @property
    def queues(self) -> list[QueueId]:
        """Queues that it reads now."""
        return self.consumer.assignment

    def subscribe(self, topic: str) -> None:
        """Takes a topic up again."""
        if self._style.kind == "lite":
            self.consumer.subscribe(topic)

    def unsubscribe(self, topic: str) -> None:
        """Gives a topic up for now."""
        if self._style.kind == "lite":
            self.consumer.unsubscribe(topic)
            self._next.clear()

    async def _main(self) -> None:
        async with self.consumer:
            self.consumer.on_assignment(lambda topic, queues: self._next.clear())
            if self._style.kind == "assigned":
                self.consumer.assign(self.place.queues)
            else:
                for topic in self._style.topics:
                    self.consumer.subscribe(topic)
            while not self._leaving.is_set():
                await self._round()

    async def _round(self) -> None:
        if self._style.auto_commit:  # the next poll commits the messages of the last one
            self._settle()
        for message in await self.consumer.poll(_POLL_MS):
            self._check(message)
            self._returned.append(self._record.begin(self.name, message))
        try:
            await asyncio.sleep(self._seconds())
        except asyncio.CancelledError:
            for call in self._returned:
                self._record.gone(call)
            raise
        for call in self._returned:
            self._record.end(call, "done")
        if not self._style.auto_commit:
            await self._commit()
        await self._whim()

    async def _commit(self) -> None:
        self._settle()
        try:
            await self.consumer.commit()
        except SprocketError as error:
            self._journal.note(self.name, f"cannot commit: {type(error).__name__}")

    def _settle(self) -> None:
        for call in self._returned:
            self._record.settle(call)
        self._returned.clear()

    def _check(self, message: StoredMessage) -> None:
        queue, offset = message.queue, int(message.queue_offset)
        wanted = self._next.get(queue, offset)
        if offset != wanted and queue not in self._record.moves:
            self._journal.complain(f"{self.name}: {queue} gives {offset}, not {wanted}")
        if queue in self._paused:
            self._journal.complain(f"{self.name}: {queue} gives {offset} and is paused")
        self._next[queue] = offset + 1

    async def _whim(self) -> None:
        """Sometimes pauses, resumes or seeks."""
        queues = self.queues
        if self._paused:
            self.consumer.resume(self._paused)
            self._paused.clear()
        elif queues and self._entropy.happens(0.05):
            self._paused = queues[: 1 + self._entropy.below(len(queues))]
            self.consumer.pause(self._paused)
        elif queues and self._seeks and self._entropy.happens(0.05):
            await self._seek(queues[self._entropy.below(len(queues))])

    async def _seek(self, queue: QueueId) -> None:
        back = max(0, self._next.get(queue, 0) - self._entropy.below(6))
        self._journal.note(self.name, f"seeks {queue} offset {back}")
        self._next.pop(queue, None)
        try:
            await self.consumer.seek(queue, back)
        except SprocketError as error:
            self._journal.note(self.name, f"cannot seek: {type(error).__name__}")
        else:
            self._next[queue] = back


def member_of(style: Style) -> Callable[..., SimulatedMember]:
    """The class of members of such a group."""
    return LiteMember if style.kind in ("lite", "assigned") else PushMember
