"""All clients of a simulated run: producers, and members of several consumer groups.

`Weather` makes faults in it: members join, leave, are killed or stopped, and change subscriptions;
producers are killed; an operator moves the offsets of a group while it consumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sprocket.admin import positions
from sprocket.admin.caller import Caller
from sprocket.base.errors import SprocketError
from sprocket.message.queue import QueueId
from sprocket.remoting.pool import Pool
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.groups import GroupRecord
from sprocket.testing.journal import Journal
from sprocket.testing.members import MemberEnvironment, SimulatedMember, Style, member_of
from sprocket.testing.traffic import SimulatedProducers, Traffic

T = TypeVar("T")

_MEMBERS_MAX = 4
_SKEW_MS_MAX = 60_000


class Group:
    """The members of one consumer group."""

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        style: Style,
        *,
        queues: int,
        entropy: SeededEntropy,
    ) -> None:
        self.style = style
        self.members: list[SimulatedMember] = []
        #: One record for the group, or one for each identity.
        self.records: list[GroupRecord] = []
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self._queues = queues
        self._joined = 0
        #: Names of members that are absent, and the disks by name; for groups with identities.
        self._away: list[str] = []
        self._disks: dict[str, MemoryDisk] = {}
        if not style.has_identities:
            self.records.append(journal.group(style.name, style.topics))

    def join(self) -> SimulatedMember | None:
        """Starts one more member; None if there are enough."""
        if self._away:
            name = self._away.pop(0)
        elif len(self.members) < (1 if self.style.kind == "assigned" else _MEMBERS_MAX):
            name = f"{self.style.name}-{self._joined}"
            self._joined += 1
        else:
            return None
        process, world = self._cluster.client(name, disk=self._disk(name))
        place = MemberEnvironment(
            process,
            world,
            self._cluster.nameserver_addresses,
            entropy=self._entropy.fork(f"{name} {self._journal.now}"),
            queues=[
                QueueId(topic, broker.name, number)
                for topic in self.style.topics
                for broker in self._cluster.brokers
                for number in range(self._queues)
            ],
        )
        record = self._record(name)
        style, journal = self.style, self._journal
        member = member_of(style)(name, place, style=style, journal=journal, record=record)
        journal.note(name, "joins")
        self.members.append(member)
        member.start()
        return member

    async def leave(self, member: SimulatedMember) -> None:
        """Stops a member in order."""
        self._journal.note(member.name, "leaves")
        self._remove(member)
        await member.leave()

    def kill(self, member: SimulatedMember) -> None:
        """Kills a member's process."""
        self._journal.note(member.name, "is killed")
        self._remove(member)
        disk = self._disks.get(member.name)
        if disk is not None:
            self._disks[member.name] = disk.after_kill()
        self._cluster.network.kill(member.process)
        member.process.kill()

    def complete(self) -> None:
        """Starts all absent identities, and at least one member."""
        while self._away or not self.members:
            self.join()

    def disk(self, name: str) -> MemoryDisk:
        """The disk of an identity."""
        return self._disks[name]

    def _remove(self, member: SimulatedMember) -> None:
        self.members.remove(member)
        if self.style.has_identities:
            self._away.append(member.name)

    def _disk(self, name: str) -> MemoryDisk | None:
        if self.style.kind != "broadcasting":
            return None
        return self._disks.setdefault(name, MemoryDisk())

    def _record(self, name: str) -> GroupRecord:
        if not self.style.has_identities:
            return self.records[0]
        label = (
            f"{self.style.name} {name}" if self.style.kind == "broadcasting" else self.style.name
        )
        record = self._journal.group(label, self.style.topics)
        if record not in self.records:
            self.records.append(record)
        return record


class Crowd:
    """Producers and groups.

    Args:
        cluster: the cluster.
        journal: records all they do.
        entropy: decides what happens, and when.
        traffic: what is sent.
        styles: the groups.
    """

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        *,
        entropy: SeededEntropy,
        traffic: Traffic,
        styles: Sequence[Style],
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self._traffic = traffic
        self.groups = [
            Group(cluster, journal, style, queues=traffic.queues, entropy=entropy.fork(style.name))
            for style in styles
        ]
        self._producers = SimulatedProducers(
            cluster, journal, traffic, entropy=entropy.fork("producers")
        )
        self._pool = Pool()
        self._operator = Caller(self._pool, cluster.nameserver_addresses, timeout_ms=3_000)

    @property
    def hosts(self) -> list[str]:
        """Hosts of all clients."""
        processes = [*self._producers.running, *(member.process for member in self._all())]
        return [process.host for process in processes]

    def faults(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The faults of clients besides those in `Weather`, by name."""
        return {
            "stop-member": self._stop_member,
            "kill-producer": self._producers.kill_one,
            "resubscribe": self._resubscribe,
            "client-clock": self._client_clock,
            "reset": self._reset,
            "kill-all": self._kill_all,
        }

    async def start(self) -> None:
        """Starts the first members."""
        for group in self.groups:
            for _ in range(group.style.members):
                group.join()

    def send_all(self) -> list[Awaitable[None]]:
        """The sends of all producers; see `SimulatedProducers.send_all`."""
        return self._producers.send_all()

    async def send_one_to_each_broker(self) -> None:
        """Sends one more message of each topic to each broker, until all are acknowledged."""
        await self._producers.send_one_to_each([broker.name for broker in self._cluster.brokers])

    def complete(self) -> None:
        """Gives all groups the members that they need at the end."""
        for group in self.groups:
            group.complete()

    async def close(self) -> None:
        """Stops all members in order."""
        await asyncio.gather(*(member.leave() for member in self._all()))
        await self._pool.close()

    # What happens to members.

    async def join(self) -> None:
        """Starts one more member of a group."""
        self._any_group().join()

    async def leave(self) -> None:
        """Stops a member in order, unless it is the last."""
        group = self._any_group()
        if len(group.members) > 1 or (group.style.has_identities and group.members):
            await group.leave(self._choose(group.members))

    async def kill_member(self) -> None:
        """Kills a member's process, unless it is the last."""
        group = self._any_group()
        if len(group.members) > 1 or (group.style.has_identities and group.members):
            group.kill(self._choose(group.members))

    async def _kill_all(self) -> None:
        """Kills all members of a group at once, and starts as many after a while."""
        group = self._any_group()
        count = len(group.members)
        for member in [*group.members]:
            group.kill(member)
        await asyncio.sleep(self._entropy.between(0.1, 10.0))
        for _ in range(count):
            group.join()

    async def _stop_member(self) -> None:
        group = self._any_group()
        if not group.members:
            return
        member = self._choose(group.members)
        seconds = self._choose((0.5, 5.0, 25.0, 45.0, 70.0, 125.0, 140.0))
        self._journal.note(member.name, f"stands still for {seconds} s")
        member.process.stop()
        await asyncio.sleep(seconds)
        self._journal.note(member.name, "wakes up")
        member.process.wake(timers_first=self._entropy.happens(0.5))

    async def _resubscribe(self) -> None:
        """Ends a group's subscription to a topic, and subscribes again after a while."""
        group = self._any_group()
        topic = self._choose(group.style.topics)
        members = [*group.members]
        self._journal.note(group.style.name, f"gives {topic} up")
        for member in members:
            member.unsubscribe(topic)
        await asyncio.sleep(self._entropy.between(0.0, 8.0))
        self._journal.note(group.style.name, f"takes {topic} up again")
        for member in members:
            member.subscribe(topic)

    async def _client_clock(self) -> None:
        clocks = [member.place.world.clock for member in self._all()]
        if clocks:
            clock = self._choose(clocks)
            assert isinstance(clock, LoopClock)
            clock.skew_ms = int(self._entropy.between(-_SKEW_MS_MAX, _SKEW_MS_MAX))
            self._journal.note("weather", f"sets a client's clock off by {clock.skew_ms}")

    async def _reset(self) -> None:
        """Moves a group's offset in one queue, as an operator, and repeats it until it succeeds."""
        group = self._any_group()
        if group.style.kind == "broadcasting":
            return
        queue = QueueId(
            self._choose(group.style.topics),
            self._choose(self._cluster.brokers).name,
            self._entropy.below(self._traffic.queues),
        )
        record, draw = group.records[0], self._entropy.random()
        record.moving.add(queue)
        try:
            await self._move(record, queue, draw)
        finally:
            record.moving.discard(queue)

    async def _move(self, record: GroupRecord, queue: QueueId, draw: float) -> None:
        name = record.name
        while True:
            try:
                lag = await positions.lag(self._operator, name, topic=queue.topic)
                found = [q for q in lag.queues if q.broker == queue.broker]
                ends = [q.end for q in found if q.number == queue.number]
                if not ends:
                    return
                offset = int(draw * (ends[0] + 1))
                self._journal.note("operator", f"moves {name} in {queue} to {offset} of {ends[0]}")
                record.move(queue, offset, end=ends[0])
                await positions.reset(self._operator, name, queue.topic, queue=queue, offset=offset)
            except SprocketError as error:
                self._journal.note("operator", f"asks again: {type(error).__name__}")
                await asyncio.sleep(1.0)
            else:
                self._journal.note("operator", f"has moved {name} in {queue}")
                return

    def _all(self) -> list[SimulatedMember]:
        return [member for group in self.groups for member in group.members]

    def _any_group(self) -> Group:
        return self._choose(self.groups)

    def _choose(self, things: Sequence[T]) -> T:
        return things[self._entropy.below(len(things))]
