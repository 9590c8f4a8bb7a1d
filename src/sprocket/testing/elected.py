"""Scenarios of groups that elect their master: by name and seed.

outcome = play("elected-kills", seed=17)      # raises Violation if an invariant does not hold

What must hold at any time: at most one member leads in an epoch; an acknowledged message of a
synchronous group is in as many logs as promised; what a reader sees at a queue offset is the same
at every member and for ever; committed offsets go back by some seconds at most. And after all came
to rest: the group accepts messages, all logs are equal, and they hold all that was acknowledged and
all that was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.clientcore.replies import SendStatus
from sprocket.election.elector import Elector
from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.message.message import Message, StoredMessage
from sprocket.message.topic import READ, WRITE
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import BROKER_PORT, GROUP_NAME, SMALL_STORE, Cluster, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.group_checks import GROUP, QUEUES, TOPIC, GroupChecks
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.network import Network
from sprocket.testing.weather import SteadyClients, Weather

MESSAGES = 60
#: Most seconds of virtual time after the last fault until the group is whole.
QUIET_SECONDS_MAX = 120.0
_SYNC = replace(SMALL_STORE, flush="SYNC_FLUSH")
_LINKS = ("break", "cut", "one-way", "slow", "freeze")
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ElectedScenario:
    """A scenario of a group.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather` and of `_ElectedRun`, drawn with equal probability.
        members: how many brokers.
        copies: copies that an acknowledged message has; 1: the master answers alone.
        count: number of faults.
        store: settings of all stores.
        sync_seconds: the shortest and the longest time of a sync of their disks.
        lease_ms: the lease of a master.
    """

    doc: str
    faults: tuple[str, ...]
    members: int = 3
    copies: int = 2
    count: int = 6
    store: StoreConfig = SMALL_STORE
    sync_seconds: tuple[float, float] = (0.0005, 0.02)
    lease_ms: int = 3_000


_KILLS = ("kill-broker", "kill-broker", "restart-broker", "break")

ELECTED: dict[str, ElectedScenario] = {
    "elected": ElectedScenario("A group of three elects a master; nothing goes wrong.", ()),
    "elected-kills": ElectedScenario("Members are killed, and stopped in order.", _KILLS),
    "elected-links": ElectedScenario(
        "Links between members, keys and clients break, stall, or work one way only.",
        (*_LINKS, "one-way"),
    ),
    "elected-pauses": ElectedScenario(
        "Members stand still, and go on as if nothing had happened.",
        ("pause-broker", "pause-broker", "kill-broker", "cut", "clock", "jump"),
    ),
    "elected-keys": ElectedScenario(
        "The servers that hold the keys are killed, stand still and are cut off.",
        ("kill-keys", "pause-keys", "cut-keys", "kill-broker", "pause-broker", "compact-keys"),
    ),
    "elected-power": ElectedScenario(
        "Members lose their power; what is acknowledged is on their disks.",
        ("power-broker", "power-broker", "kill-broker", "break"),
        store=_SYNC,
        sync_seconds=(0.005, 0.3),
    ),
    "elected-disks": ElectedScenario(
        "Disks of members are full, slow, or fail.",
        ("disk-full", "disk-slow", "disk-error", "kill-broker"),
        store=_SYNC,
    ),
    "elected-alone": ElectedScenario(
        "The master answers alone: what it acknowledged may be lost, what was read is not.",
        (*_KILLS, "pause-broker", "cut", "one-way", "slow"),
        copies=1,
    ),
    "elected-two": ElectedScenario(
        "A group of two, of which one must be enough.",
        (*_KILLS, "pause-broker", "one-way"),
        members=2,
        copies=1,
    ),
    "elected-five": ElectedScenario(
        "A group of five with three copies, and all faults.",
        (*_KILLS, *_LINKS, "pause-broker", "kill-keys", "clock", "restart-nameserver"),
        members=5,
        copies=3,
        count=9,
    ),
    "elected-tail": ElectedScenario(
        "A master is lost with messages that no other member has, and comes back.",
        ("lose-tail", "lose-tail", "lose-tail", "kill-broker"),
    ),
    "elected-short": ElectedScenario(
        "A lease of one second.",
        (*_KILLS, "pause-broker", "slow", "cut"),
        lease_ms=1_000,
    ),
}


class _GroupClients(SteadyClients):
    """Two producers and a consumer, as clients for `Weather`."""

    def __init__(self, run: _ElectedRun, entropy: SeededEntropy) -> None:
        self._run = run
        self._entropy = entropy
        self.hosts: list[str] = []
        self.sent = 0
        self.consumed: set[str] = set()
        #: Keys of acknowledged messages, with queue number and queue offset.
        self.acknowledged: dict[str, tuple[int, int]] = {}

    async def send(self, name: str) -> None:
        """Sends messages, and checks each that is acknowledged."""
        process, world = self._run.cluster.client(name)
        self.hosts.append(process.host)
        producer = Producer(
            "senders",
            nameservers=self._run.cluster.nameserver_addresses,
            config=ProducerConfig(send_timeout_ms=5_000),
            world=world,
        )
        await process.start(self._send_all(name, producer))

    async def _send_all(self, name: str, producer: Producer) -> None:
        entropy = self._entropy.fork(name)
        async with producer:
            for number in range(MESSAGES):
                await asyncio.sleep(entropy.between(0.0, 1.0))
                key = f"{name}-{number}"
                body = key.encode() + b" " * entropy.below(1000)
                self.sent += 1
                try:
                    sent = await producer.send(Message(TOPIC, body, keys=[key]))
                except SprocketError as error:
                    self._run.journal.note(name, f"fails: {type(error).__name__}", key)
                    continue
                if sent.status is SendStatus.OK:
                    self.acknowledged[key] = (sent.queue.number, sent.queue_offset)
                    self._run.checks.check_copies(key, sent.queue.number, sent.queue_offset)

    async def consume(self) -> None:
        """Consumes all messages."""
        process, world = self._run.cluster.client("consumer")
        self.hosts.append(process.host)
        consumer = PushConsumer(
            GROUP, nameservers=self._run.cluster.nameserver_addresses, start="first", world=world
        )

        async def listen(message: StoredMessage) -> None:
            self.consumed.add(message.keys[0])

        async def forever() -> None:
            async with consumer:
                consumer.on(TOPIC)(listen)
                await asyncio.Event().wait()

        await process.start(forever())


class _ElectedRun:
    def __init__(self, scenario: ElectedScenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.keys = KeyServers(network)
        self.cluster = Cluster(
            network,
            seed,
            brokers=scenario.members,
            broker=BrokerConfig(
                role="SYNC_MASTER" if scenario.copies > 1 else "ASYNC_MASTER",
                copies=scenario.copies,
                copies_min=scenario.copies,
                lease_ms=scenario.lease_ms,
                replication_batch_bytes=4096,
                replication_start="first",
            ),
            store=scenario.store,
            sync_seconds=scenario.sync_seconds,
            elect=self._elector,
        )
        self.senders = _GroupClients(self, self.entropy.fork("work"))
        self.checks = GroupChecks(
            self.cluster,
            copies=scenario.copies,
            is_flushing=scenario.store.flush == "SYNC_FLUSH",
        )

    def _elector(self, machine: Machine) -> Elector:
        entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
        request = ElectorRequest(
            "", "c", GROUP_NAME, machine.disk, "/data", entropy, machine.clock,
            lease_ms=self.scenario.lease_ms,
        )  # fmt: skip
        return key_elector(self.keys.client(), request)

    async def play(self) -> HistoryOutcome:
        await self.keys.start()
        await self.cluster.start()
        await self._until_whole()
        await self._create_topic()
        working = [asyncio.ensure_future(self.senders.send(f"sender{n}")) for n in range(2)]
        consuming = asyncio.ensure_future(self.senders.consume())
        watching = asyncio.ensure_future(self._watch())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        weather = Weather(
            self.cluster,
            self.senders,
            entropy=self.entropy.fork("weather"),
            journal=self.journal,
            more=self._faults(self.entropy.fork("keys")),
        )
        if self.scenario.faults:
            await weather.pass_over(self.scenario.faults, self.scenario.count, seconds=25.0)
        await self.keys.start()
        await weather.clear()
        await asyncio.gather(*working)
        await self._until_whole(watching)
        self.checks.check_the_end(self.senders.acknowledged)
        await self._until_consumed()
        for task in (watching, supervising, consuming):
            task.cancel()
        await self.cluster.stop()
        acknowledged = self.senders.acknowledged
        return HistoryOutcome(
            self.network.history, self.network.now(), self.senders.sent, len(acknowledged),
            len(self.senders.consumed), self.journal,
        )  # fmt: skip

    async def _create_topic(self) -> None:
        header = CreateTopic(
            topic=TOPIC,
            default_topic="TBW102",
            read_queue_nums=QUEUES,
            write_queue_nums=QUEUES,
            perm=READ | WRITE,
            topic_filter_type="SINGLE_TAG",
        )
        pool = Pool()
        address = f"{self.checks.master().address}:{BROKER_PORT}"
        await pool.ask(address, header, deadline=Deadline.after(10.0))
        await pool.close()

    # Faults.

    def _faults(self, entropy: SeededEntropy) -> dict[str, Callable[[], Awaitable[None]]]:
        def choose(machines: Sequence[Machine]) -> Machine:
            return machines[entropy.below(len(machines))]

        async def one_way() -> None:
            hosts = [m.name for m in (*self.cluster.machines, *self.keys.machines)]
            one, other = (hosts[entropy.below(len(hosts))] for _ in range(2))
            self.journal.note("weather", f"holds what {one} sends to {other}")
            self.network.cut_one_way(one, other)
            await asyncio.sleep(entropy.between(0.1, 12.0))
            self.network.heal()

        async def kill_keys() -> None:
            machine = choose(self.keys.machines)
            self.journal.note("weather", f"kills {machine.name}")
            machine.kill()
            await asyncio.sleep(entropy.between(0.1, 8.0))
            await machine.start()

        async def pause_keys() -> None:
            machine = choose(self.keys.machines)
            self.journal.note("weather", f"lets {machine.name} stand still")
            machine.pause()
            await asyncio.sleep(entropy.between(0.1, 12.0))
            machine.wake()

        async def cut_keys() -> None:
            machine = choose(self.cluster.brokers)
            self.journal.note("weather", f"cuts {machine.name} from the keys")
            for each in self.keys.machines:
                self.network.cut(machine.name, each.name)
            await asyncio.sleep(entropy.between(0.1, 12.0))
            self.network.heal()

        async def compact_keys() -> None:
            self.keys.state.compact()

        return {
            "one-way": one_way, "kill-keys": kill_keys, "pause-keys": pause_keys,
            "cut-keys": cut_keys, "compact-keys": compact_keys,
            "lose-tail": partial(self._lose_tail, entropy),
        }  # fmt: skip

    async def _lose_tail(self, entropy: SeededEntropy) -> None:
        """The master is lost with messages that no other member has; it comes back when another one
        has given their offsets to others, perhaps."""
        leading = list(self.checks.leading())
        if not leading:
            return
        master = max(leading, key=lambda each: each[0])[1]
        self.journal.note("weather", f"leaves {master.name} with what nobody else has")
        for each in self.cluster.brokers:
            if each is not master:
                self.network.cut(master.name, each.name)
        await asyncio.sleep(entropy.between(0.1, 1.0))
        is_killed = master.is_running
        if is_killed:
            master.kill()
        for each in self.cluster.brokers:
            self.network.break_connections(each.name)  # what is on the way does not arrive
        self.network.heal()
        await asyncio.sleep(entropy.between(0.5, 6.0))
        if is_killed:
            await master.start()
            self.checks.check()

    async def _watch(self) -> None:
        """Checks twice a second what must always hold."""
        while True:
            self.checks.check()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _until_whole(self, watching: asyncio.Future[None] | None = None) -> None:
        """Returns when one member leads, all are in sync, and have the same log."""
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while self.network.now() < give_up:
            if watching is not None and watching.done():
                await watching
            if self._is_whole():
                return
            await asyncio.sleep(1.0)
        states = "; ".join(
            f"{machine.name} ends {store.log_end}, shows {store.readable_end}"
            for machine, store in self.checks.open_members()
        )
        leading = [f"{machine.name} in epoch {epoch}" for epoch, machine in self.checks.leading()]
        raise Violation(
            f"the group is not whole after all came to rest: {states}; leading: {leading}"
        )

    def _is_whole(self) -> bool:
        stores = [store for _, store in self.checks.open_members()]
        leading = list(self.checks.leading())
        if len(stores) < self.scenario.members or len(leading) != 1:
            return False
        view = leading[0][1].server._elector.view
        ends = {end for each in stores for end in (each.log_end, each.readable_end)}
        return len(view.in_sync) == self.scenario.members and len(ends) == 1

    async def _until_consumed(self) -> None:
        """Returns when all that can be read is consumed."""
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while missing := {seen.key for seen in self.checks.seen.values()} - self.senders.consumed:
            if self.network.now() > give_up:
                raise Violation(f"{len(missing)} messages are not consumed: {sorted(missing)[:3]}")
            await asyncio.sleep(1.0)


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `ELECTED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _ElectedRun(ELECTED[name], network, words)
    )
