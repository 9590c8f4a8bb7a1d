"""Scenarios of the clients that pop, by name and seed: simple consumers, and push consumers.

outcome = play("popping-kills", seed=17)      # raises Violation if an invariant does not hold
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.broker.config import BrokerConfig
from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.popped_message import PoppedMessage
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.pop_record import Held, PoppingRecord, PopRecord
from sprocket.testing.process import SimulatedProcess
from sprocket.testing.weather import Weather

TOPIC, GROUP, QUEUES = "tasks", "workers", 2
MESSAGES, MEMBERS, MEMBERS_MAX = 40, 3, 6
#: Most seconds of virtual time after the last fault until all are done.
QUIET_SECONDS_MAX = 300.0
_INVISIBLE_MS, _HOLD_MS = 6_000, 2_000
_SMALL = replace(SMALL_STORE, timer_file_bytes=4096, timer_roll_slots=8)


@dataclass(frozen=True, slots=True)
class PoppingScenario:
    """A scenario of popping clients.

    Attributes:
        doc: one sentence.
        kind: `simple` consumers, `push` consumers, or push consumers in `order`.
        faults: names of faults of `weather`, drawn with equal probability.
        brokers, slaves: how many; with a slave, it becomes the master once.
        is_calm: nothing goes wrong, so each message is done once.
    """

    doc: str
    kind: str
    faults: tuple[str, ...] = ()
    brokers: int = 1
    slaves: int = 0
    is_calm: bool = False


_KILLS = ("kill-broker", "restart-broker", "pause-broker", "break")
_NETWORK = ("break", "cut", "slow", "freeze", "restart-broker")
_MEMBERS = ("join", "leave", "kill-member", "break")

POPPING: dict[str, PoppingScenario] = {
    "popping-simple": PoppingScenario("Simple consumers while the broker dies.", "simple", _KILLS),
    "popping-simple-network": PoppingScenario(
        "Simple consumers on a bad network, two brokers.", "simple", _NETWORK, brokers=2
    ),
    "popping-calm": PoppingScenario(
        "Push consumers; listeners take longer than the invisible time.", "push", is_calm=True
    ),
    "popping-kills": PoppingScenario("Push consumers while the broker dies.", "push", _KILLS),
    "popping-network": PoppingScenario(
        "Push consumers on a bad network, two brokers.", "push", _NETWORK, brokers=2
    ),
    "popping-members": PoppingScenario("Members come, go and die.", "push", _MEMBERS, brokers=2),
    "popping-promotion": PoppingScenario(
        "The master is lost, and its slave is the master then.", "push", slaves=1
    ),
    "popping-order": PoppingScenario("In order, while broker and members die.", "order",
                                     (*_KILLS, *_MEMBERS)),
    "popping-order-network": PoppingScenario("In order, on a bad network.", "order", _NETWORK),
}  # fmt: skip


class _PoppingMembers:
    """Producer and members of the group, as clients for `Weather`."""

    def __init__(
        self, scenario: PoppingScenario, cluster: Cluster, journal: Journal, entropy: SeededEntropy
    ) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self.popped = PopRecord(is_order=False, keeps_time=True)
        self.record = PoppingRecord(scenario.kind == "order")
        self.sent: set[str] = set()
        self.hosts: list[str] = []
        self.is_careful = scenario.is_calm
        self.failure: Violation | None = None
        self._members: list[tuple[SimulatedProcess, PushConsumer | SimpleConsumer]] = []
        self._count = 0

    @property
    def missing(self) -> set[str]:
        """Messages that are stored, and not done."""
        if self._scenario.kind != "simple":
            return {key for key in self.sent if not self.record.done[key]}
        held = self.popped.held
        return {
            key
            for key in self.sent
            if key not in held or not (held[key].is_done or held[key].is_unsure)
        }

    @property
    def given(self) -> int:
        """How often a message was given out."""
        return self.popped.given + self.record.given

    async def send_all(self) -> None:
        """Sends the messages; with one attempt, each is stored once or not at all."""
        process, world = self._cluster.client("sender")
        self.hosts.append(process.host)

        async def work() -> None:
            producer = Producer(
                "senders",
                nameservers=self._cluster.nameserver_addresses,
                config=ProducerConfig(retries=0, route_refresh_ms=1_000),
                world=world,
            )
            async with producer:
                for number in range(MESSAGES):
                    await asyncio.sleep(self._entropy.between(0.0, 1.2))
                    await self._send(producer, f"task-{number}")

        await process.start(work())

    async def _send(self, producer: Producer, key: str) -> None:
        try:
            message = Message(TOPIC, key.encode(), keys=[key])
            await producer.send(message, timeout_ms=3_000)
        except SprocketError as error:
            self._journal.note("sender", f"fails: {type(error).__name__}", key)
        else:
            self.sent.add(key)
            self._journal.note("sender", "stores", key)

    async def join(self) -> None:
        """Starts one more member of the group."""
        if len(self._members) >= MEMBERS_MAX:
            return
        name = f"member-{self._count}"
        self._count += 1
        process, world = self._cluster.client(name)
        self.hosts.append(process.host)
        entropy = self._entropy.fork(name)
        servers = self._cluster.nameserver_addresses
        consumer: PushConsumer | SimpleConsumer
        if self._scenario.kind == "simple":
            simple = SimpleConfig(hold_ms=_HOLD_MS, route_refresh_ms=2_000)
            consumer = SimpleConsumer(
                GROUP, nameservers=servers, start="first", config=simple, world=world
            )
            consumer.subscribe(TOPIC)
            work = self._receive(consumer, name, entropy)
            self._members.append((process, consumer))
            self._work = asyncio.ensure_future(process.start(work))
            return
        config = ConsumerConfig(
            invisible_ms=_INVISIBLE_MS, hold_ms=_HOLD_MS, concurrency=4, pop_batch=6,
            route_refresh_ms=2_000, suspend_ms=200,
        )  # fmt: skip
        consumer = PushConsumer(
            GROUP,
            nameservers=servers,
            start="first",
            mode="pop",
            ordered=self._scenario.kind == "order",
            config=config,
            world=world,
        )
        consumer.subscribe(TOPIC, listener=self._listener(name, entropy))
        self._members.append((process, consumer))
        await process.run(consumer.start())

    async def leave(self) -> None:
        """Stops a member in order."""
        if len(self._members) > 1:
            process, consumer = self._members.pop(self._entropy.below(len(self._members)))
            self._journal.note(process.name, "leaves")
            await process.run(consumer.close())

    async def kill_member(self) -> None:
        """Kills a member's process."""
        if len(self._members) > 1:
            process, _ = self._members.pop(self._entropy.below(len(self._members)))
            self._journal.note(process.name, "is killed")
            self._cluster.network.kill(process)
            process.kill()

    async def close(self) -> None:
        """Stops all members."""
        for process, consumer in self._members:
            await process.run(consumer.close())

    # A push consumer's listener.

    def _listener(
        self, name: str, entropy: SeededEntropy
    ) -> Callable[[StoredMessage], Awaitable[Later | None]]:
        async def listen(message: StoredMessage) -> Later | None:
            key = message.keys[0]
            self._journal.note(name, f"gets at {message.queue.number}", key)
            try:
                self.record.begin(message)
            except Violation as violation:
                self.failure = self.failure or violation
            is_long = entropy.happens(0.1)
            await asyncio.sleep(entropy.between(9.0, 20.0) if is_long else entropy.between(0, 0.5))
            if not self.is_careful and entropy.happens(0.2):
                if entropy.happens(0.5):
                    raise ValueError("a listener fails")
                return Later(1 + entropy.below(2))
            self.record.done[key] += 1
            self._journal.note(name, "has done", key)
            return None

        return listen

    # A simple consumer's loop.

    async def _receive(self, consumer: SimpleConsumer, name: str, entropy: SeededEntropy) -> None:
        async with consumer:
            while consumer.client_id is not None:
                invisible_ms = int(entropy.between(2_000, 15_000))
                try:
                    messages = await consumer.receive(
                        1 + entropy.below(6), invisible_ms=invisible_ms
                    )
                except SprocketError:
                    await asyncio.sleep(entropy.between(0.1, 1.0))
                    continue
                for message in messages:
                    self._journal.note(name, f"gets {message.handle.encode()}", message.keys[0])
                    try:
                        held = self.popped.came(message.keys[0], message.handle)
                    except Violation as violation:
                        self.failure = self.failure or violation
                        return
                    await self._do(consumer, message, held, entropy)

    async def _do(
        self, consumer: SimpleConsumer, message: PoppedMessage, held: Held, entropy: SeededEntropy
    ) -> None:
        await asyncio.sleep(entropy.between(0.0, 0.5))
        if not self.is_careful and entropy.happens(0.25):
            return
        is_newest = message.handle.pop_ms == held.pop_ms
        if not self.is_careful and entropy.happens(0.2):
            hidden_ms = int(entropy.between(500, 20_000))
            if is_newest:
                held.due_ms = 0
            try:
                await consumer.change_invisible_time(message, hidden_ms)
            except SprocketError:
                return
            if is_newest:  # by the local clock, since the change may have been late
                held.pop_ms = max(held.pop_ms, message.handle.pop_ms)
            return
        if message.handle.pop_ms == held.pop_ms:
            held.is_unsure = True
        try:
            await consumer.ack(message)
        except SprocketError:  # also a late one: it was repeated, and the first may have counted
            held.due_ms = 0
        else:
            if message.handle.pop_ms == held.pop_ms:
                held.is_done = True
                self._journal.note("group", "has done", message.keys[0])


class _PoppingRun:
    def __init__(self, scenario: PoppingScenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        is_copied = scenario.slaves > 0
        self.broker = BrokerConfig(
            role="SYNC_MASTER" if is_copied else "ASYNC_MASTER",
            copies=1 + scenario.slaves,
            copies_min=1,
            registration_ms=2_000,
        )
        self.cluster = Cluster(
            network, seed, brokers=scenario.brokers, slaves=scenario.slaves, store=_SMALL,
            broker=self.broker,
        )  # fmt: skip
        entropy = self.entropy.fork("work")
        self.members = _PoppingMembers(scenario, self.cluster, self.journal, entropy)
        self.observer = Observer(self.cluster, TOPIC, QUEUES, group=GROUP)

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self.observer.create_topic()
        await asyncio.sleep(5.0)
        members = self.members
        for _ in range(MEMBERS):
            await members.join()
        sending = asyncio.ensure_future(members.send_all())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        weather = Weather(
            self.cluster, members, entropy=self.entropy.fork("weather"), journal=self.journal
        )
        if self.scenario.faults:
            await weather.pass_over(self.scenario.faults, 6, seconds=45.0)
        if self.scenario.slaves:
            await self._promote()
        else:
            await weather.clear()
        await sending
        members.is_careful = True
        await self._until_all_done()
        supervising.cancel()
        await members.close()
        self._check()
        await self.observer.close()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history, self.network.now(), MESSAGES, len(members.sent), members.given,
            self.journal,
        )  # fmt: skip

    async def _promote(self) -> None:
        await asyncio.sleep(self.entropy.between(8.0, 25.0))
        master, slave = self.cluster.brokers[0], self.cluster.slaves[0]
        master.kill()
        await asyncio.sleep(self.entropy.between(0.0, 3.0))
        await slave.stop()
        await self.cluster.promote(slave, role="ASYNC_MASTER", id=0, copies=1)
        self.cluster.brokers[0] = slave
        self.cluster.slaves.clear()

    async def _until_all_done(self) -> None:
        give_up = Deadline.after(QUIET_SECONDS_MAX)
        rest = Deadline.after(60.0)
        while self.members.missing or rest.left():
            self._check_failure()
            if not give_up.left():
                missing = self.members.missing
                raise Violation(
                    f"{min(missing)} was stored and never done, of {len(missing)} that were not"
                )
            await asyncio.sleep(1.0)

    def _check_failure(self) -> None:
        if self.members.failure is not None:
            raise self.members.failure

    def _check(self) -> None:
        self._check_failure()
        done = self.members.record.done
        twice = sorted(key for key, count in done.items() if count > 1)
        if self.scenario.is_calm and twice:
            raise Violation(f"{twice[0]} was done {done[twice[0]]} times")


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `POPPING`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _PoppingRun(POPPING[name], network, words)
    )
