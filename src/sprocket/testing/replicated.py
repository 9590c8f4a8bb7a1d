"""Scenarios of replication: a master and its slaves, by name and seed.

outcome = play("replicas-kills", seed=17)      # raises Violation if an invariant does not hold
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sprocket.base.errors import OffsetOutOfRange, SprocketError
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.clientcore.replies import SendStatus
from sprocket.message.ids import parse_offset_id
from sprocket.message.message import Message
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.testing.cluster import SMALL_STORE, Cluster, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.weather import SteadyClients, Weather
from sprocket.testing.wire import WINDOW_BYTES

TOPIC, QUEUES = "copied", 2
MESSAGES = 60
#: Most seconds of virtual time after the last fault until all slaves have the whole log.
QUIET_SECONDS_MAX = 120.0
#: Bytes of the log that a master may have sent and its slave not received: two frames and what the
#: kernels hold.
_UNREAD_MAX = 3 * 4096 + WINDOW_BYTES
_SYNC = replace(SMALL_STORE, flush="SYNC_FLUSH")
_LINKS = ("break", "cut", "slow", "freeze", "answers")
_KILLS = ("kill-broker", "kill-slave", "kill-slave", "restart-broker", "restart-slave")


@dataclass(frozen=True, slots=True)
class ReplicaScenario:
    """A scenario of replication.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather`, drawn with equal probability.
        slaves: how many.
        copies: copies that an acknowledged message has; 1: sends wait for no slave.
        count: number of faults.
        body_bytes: the longest body.
        store: settings of all stores.
        sync_seconds: the shortest and the longest time of a sync of their disks.
    """

    doc: str
    faults: tuple[str, ...]
    slaves: int = 2
    copies: int = 2
    count: int = 6
    body_bytes: int = 2000
    store: StoreConfig = SMALL_STORE
    sync_seconds: tuple[float, float] = (0.0005, 0.02)


REPLICATED: dict[str, ReplicaScenario] = {
    "replicas": ReplicaScenario("Slaves copy a master, and nothing goes wrong.", (), copies=3),
    "replicas-links": ReplicaScenario(
        "Connections between a master and its slaves break, stall and distort what they carry.",
        (*_LINKS, "pause-slave", "pause-broker"),
    ),
    "replicas-kills": ReplicaScenario("A master and three slaves are killed.", _KILLS, 3, 3),
    "replicas-lag": ReplicaScenario(
        "Nobody waits for the one slave, which stands still, is killed and comes back.",
        ("pause-slave", "pause-slave", "kill-slave", "restart-slave", "restart-broker"),
        slaves=1,
        copies=1,
        body_bytes=12_000,
    ),
    "replicas-power": ReplicaScenario(
        "Master and slaves lose their power; what is acknowledged is on their disks.",
        ("power-broker", "power-slave", "power-slave", "kill-slave", "break"),
        store=_SYNC,
        sync_seconds=(0.005, 0.3),
    ),
    "replicas-disks": ReplicaScenario(
        "Disks of master and slaves are full, slow, or fail.",
        (
            *("disk-full", "disk-slow", "disk-error"),
            *("slave-disk-full", "slave-disk-slow", "slave-disk-error"),
        ),
        store=_SYNC,
    ),
}


class _CopiedSenders(SteadyClients):
    """Two producers, as clients for `Weather`; they know which message is in how many logs."""

    def __init__(self, run: _ReplicatedRun, entropy: SeededEntropy) -> None:
        self._run = run
        self._entropy = entropy
        self.hosts: list[str] = []
        self.sent = 0
        self.acknowledged = 0

    async def work(self, name: str) -> None:
        """Sends messages, and checks each that is acknowledged."""
        process, world = self._run.cluster.client(name)
        self.hosts.append(process.host)
        producer = Producer(
            "senders",
            nameservers=self._run.cluster.nameserver_addresses,
            config=ProducerConfig(retries=0),
            world=world,
        )
        await process.start(self._send_all(name, producer))

    async def _send_all(self, name: str, producer: Producer) -> None:
        entropy, journal = self._entropy.fork(name), self._run.journal
        async with producer:
            for number in range(MESSAGES):
                await asyncio.sleep(entropy.between(0.0, 1.0))
                key = f"{name}-{number}"
                body = key.encode() + bytes(entropy.below(self._run.scenario.body_bytes))
                self.sent += 1
                try:
                    sent = await producer.send(Message(TOPIC, body, keys=[key]), timeout_ms=4_000)
                except SprocketError as error:
                    journal.note(name, f"fails: {type(error).__name__}", key)
                    continue
                if sent.status is SendStatus.OK:
                    self.acknowledged += 1
                    self._run.check_copies(key, parse_offset_id(sent.offset_id)[1])


class _ReplicatedRun:
    def __init__(self, scenario: ReplicaScenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.cluster = Cluster(
            network,
            seed,
            slaves=scenario.slaves,
            broker=BrokerConfig(
                role="SYNC_MASTER" if scenario.copies > 1 else "ASYNC_MASTER",
                copies=scenario.copies,
                replication_batch_bytes=4096,
            ),
            store=scenario.store,
            sync_seconds=scenario.sync_seconds,
        )
        self.senders = _CopiedSenders(self, self.entropy.fork("work"))

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        observer = Observer(self.cluster, TOPIC, QUEUES, group="g")
        await observer.create_topic()
        await observer.close()
        working = [asyncio.ensure_future(self.senders.work(f"sender{n}")) for n in range(2)]
        watching = asyncio.ensure_future(self._watch())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        weather = Weather(
            self.cluster,
            self.senders,
            entropy=self.entropy.fork("weather"),
            journal=self.journal,
        )
        if self.scenario.faults:
            await weather.pass_over(self.scenario.faults, self.scenario.count, seconds=25.0)
        await weather.clear()
        await asyncio.gather(*working)
        await self._until_all_have_it(watching)
        for task in (watching, supervising):
            task.cancel()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            self.senders.sent,
            self.senders.acknowledged,
            0,
            self.journal,
        )

    def check_copies(self, key: str, log_offset: int) -> None:
        """An acknowledged message is in as many logs as its sender was promised.

        Raises:
            Violation: it is not.
        """
        count = sum(self._end_of(store) > log_offset for _, store in self._stores())
        if count < self.scenario.copies:
            raise Violation(
                f"{key} at log offset {log_offset} was acknowledged and is in {count} logs"
            )

    def _end_of(self, store: Store) -> int:
        """Up to where a log survives what happens in this scenario."""
        is_safe = self.scenario.store.flush == "SYNC_FLUSH"
        return store.flushed.value if is_safe else store.log_end

    def _stores(self) -> Iterator[tuple[Machine, Store]]:
        """The stores of all brokers, the master's first; of one that is down, its last."""
        for machine in (*self.cluster.brokers, *self.cluster.slaves):
            store = getattr(machine.server, "_store", None)
            if store is not None:
                yield machine, store

    async def _watch(self) -> None:
        """Checks every second the invariants that must always hold."""
        while True:
            await asyncio.sleep(1.0)
            self._check()

    def _check(self) -> None:
        """All logs are the beginning of the master's, and a slave that stands still costs little.

        Raises:
            Violation: they are not.
        """
        (_, master), *slaves = self._stores()
        if not self.cluster.brokers[0].is_running or not master.log_end:
            return
        for machine, store in slaves:
            if machine.is_running and store.log_end:
                self._compare(machine.name, store, master)
        sender = self.cluster.brokers[0].server._parts.replication.sender
        ends = {machine.address: store.log_end for machine, store in slaves}
        for link in sender.links.values():
            unread = link.sent - max(link.requested, ends.get(link.host, 0))
            if link.reported.value > 0 and unread > _UNREAD_MAX:
                raise Violation(f"{unread} bytes are on the way to a slave that does not read")

    def _compare(self, name: str, store: Store, master: Store) -> None:
        if store.log_end > master.log_end:
            raise Violation(
                f"{name} has {store.log_end - master.log_end} bytes more than its master"
            )
        at: int = max(store.log_start, master.log_start)
        while at < store.log_end:
            try:
                own = store.replica.read(at, 1 << 14)
                theirs = master.replica.read(at, len(own))
            except OffsetOutOfRange:
                return
            if not own or not theirs:  # one of the stores was just closed
                return
            if own != theirs:
                raise Violation(f"the log of {name} differs from its master's behind {at}")
            at += len(own)

    async def _until_all_have_it(self, watching: asyncio.Future[None]) -> None:
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while self.network.now() < give_up:
            if watching.done():
                await watching
            (_, master), *slaves = self._stores()
            if all(store.log_end == master.log_end for _, store in slaves):
                self._check()
                return
            await asyncio.sleep(1.0)
        ends = ", ".join(f"{machine.name} {store.log_end}" for machine, store in self._stores())
        raise Violation(f"not all slaves have the whole log after all came to rest: {ends}")


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `REPLICATED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _ReplicatedRun(REPLICATED[name], network, words)
    )
