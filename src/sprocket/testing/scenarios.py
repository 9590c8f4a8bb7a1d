"""Whole histories of a cluster, each told by a name and a seed, and checked all along.

outcome = play("storm", seed=17)      # raises Violation if an invariant does not hold
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from sprocket.base.errors import ReplyError, TransportError
from sprocket.store.config import StoreConfig
from sprocket.testing import invariants
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.weather import Weather
from sprocket.testing.workload import GROUP, QUEUES, TOPIC, Habits, Workload

#: Seconds of virtual time in which everything must have come through once the weather is fair:
#: a client may take 30 s to look at its route again, then 20 s to share its queues anew.
QUIET_SECONDS_MAX = 300.0
_LOOK_SECONDS = 1.0
_USUAL = Habits()


@dataclass(frozen=True, slots=True)
class Scenario:
    """What there is, and what goes wrong with it.

    Attributes:
        doc: one sentence.
        faults: names of `weather`, drawn with equal chances; more often named, more often drawn.
        count: how many faults.
        nameservers, brokers, producers, members: how many of each.
        late: members that join when the weather is fair again.
        messages: how many each producer sends.
        seconds: about how long sending and bad weather last, in virtual time.
        habits: how clients behave.
        store: settings of the brokers' stores.
        sync_seconds: the shortest and longest time that their disks take to sync.
    """

    doc: str
    faults: tuple[str, ...]
    count: int = 5
    nameservers: int = 1
    brokers: int = 1
    producers: int = 2
    members: int = 2
    late: int = 0
    messages: int = 25
    seconds: float = 20.0
    habits: Habits = _USUAL
    store: StoreConfig = SMALL_STORE
    sync_seconds: tuple[float, float] = (0.0005, 0.02)


SCENARIOS: dict[str, Scenario] = {
    "fair": Scenario("Nothing goes wrong.", ()),
    "connections": Scenario(
        "Connections break, ways are cut or slow.", ("break", "break", "cut", "slow"), members=3
    ),
    "restarts": Scenario(
        "Brokers are stopped in order and started again.",
        ("restart-broker", "restart-broker", "break", "clock"),
    ),
    "kills": Scenario(
        "Broker processes are killed and started again.",
        ("kill-broker", "kill-broker", "break", "clock"),
    ),
    "nameservers": Scenario(
        "Name servers go and come back, and brokers too.",
        ("restart-nameserver", "kill-nameserver", "restart-broker", "cut"),
        nameservers=2,
    ),
    "members": Scenario(
        "Members of the group come, go and die.", ("join", "leave", "kill-member", "break"), count=6
    ),
    "retries": Scenario(
        "Listeners give messages back, while brokers and members go and come.",
        ("break", "restart-broker", "kill-broker", "leave", "join", "kill-member"),
        habits=Habits(failures=0.25, listener_seconds=4.0),
    ),
    "power": Scenario(
        "Brokers with slow disks lose their power; a send is answered when it is on the disk.",
        ("power-broker", "power-broker", "break", "restart-broker"),
        habits=Habits(listener_seconds=0.02),
        store=replace(SMALL_STORE, flush="SYNC_FLUSH"),
        sync_seconds=(0.01, 1.5),
    ),
    "storm": Scenario(
        "All of it at once, with two brokers.",
        (
            *("break", "cut", "slow", "clock", "restart-broker", "kill-broker"),
            *("restart-nameserver", "join", "leave", "kill-member"),
        ),
        count=8,
        nameservers=2,
        brokers=2,
        habits=Habits(failures=0.1),
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        history: a digest of everything that happened; equal for equal runs.
        seconds: how long it took, in virtual time.
        sent, acknowledged, delivered: messages, messages, and calls of listeners.
        journal: what happened, for people.
    """

    history: str
    seconds: float
    sent: int
    acknowledged: int
    delivered: int
    journal: Journal


def play(name: str, seed: int) -> Outcome:
    """Plays a scenario of `SCENARIOS`.

    Raises:
        Violation: an invariant does not hold; the text has scenario, seed and the message's story.
    """
    scenario = SCENARIOS[name]
    network = Network(f"{name} {seed}")
    run = _Run(scenario, network, f"{name} {seed}")
    try:
        return simulate(lambda _: run.play(), network=network)
    except AssertionError as error:
        again = f"python -m sprocket.testing --scenario {name} --seed {seed}"
        violation = invariants.Violation(f"{error}\nplay it again: {again}")
        violation.journal = run.journal
        raise violation from error


class _Run:
    def __init__(self, scenario: Scenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.seed = seed
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)

    async def play(self) -> Outcome:
        self.cluster = Cluster(
            self.network,
            self.seed,
            nameservers=self.scenario.nameservers,
            brokers=self.scenario.brokers,
            store=self.scenario.store,
            sync_seconds=self.scenario.sync_seconds,
        )
        self.workload = Workload(
            self.cluster,
            self.journal,
            entropy=self.entropy.fork("work"),
            habits=self.scenario.habits,
        )
        self.observer = Observer(self.cluster, TOPIC, QUEUES, group=GROUP)
        await self.cluster.start()
        await self.observer.create_topic()
        watching = asyncio.ensure_future(self._watch())
        await self._bad_times()
        await self._quiet_times(watching)
        watching.cancel()
        await self._look_at_the_end()
        await self.workload.close()
        await self.observer.close()
        await self.cluster.stop()
        return Outcome(
            self.network.history,
            self.network.now(),
            len(self.journal.bodies),
            len(self.journal.acknowledged),
            sum(self.journal.deliveries.values()),
            self.journal,
        )

    async def _bad_times(self) -> None:
        """Everybody works while things go wrong."""
        scenario, names = self.scenario, range(self.scenario.producers)
        for _ in range(scenario.members):
            await self.workload.join()
        sending = [
            self.workload.produce(f"producer-{n}", scenario.messages, seconds=scenario.seconds)
            for n in names
        ]
        weather = Weather(
            self.cluster,
            self.workload,
            entropy=self.entropy.fork("weather"),
            journal=self.journal,
        )
        if scenario.faults:
            await weather.pass_over(scenario.faults, scenario.count, seconds=scenario.seconds)
        await weather.clear()
        for _ in range(scenario.late):
            await self.workload.join()
        await asyncio.gather(*sending)

    async def _quiet_times(self, watching: asyncio.Future[None]) -> None:
        """Waits until all is consumed and committed."""
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while self.network.now() < give_up:
            if watching.done():
                await watching
            if not self.journal.unfinished and not await self._behind():
                return
            await asyncio.sleep(_LOOK_SECONDS)
        invariants.acknowledged_is_consumed(self.journal)
        raise invariants.Violation(f"all was consumed and is not committed: {await self._behind()}")

    async def _behind(self) -> list[str]:
        """Queues whose committed offset is not at their end."""
        committed = await self.observer.committed()
        try:
            stored = await self.observer.stored()
        except (TransportError, ReplyError) as error:
            return [f"a broker does not answer: {error}"]
        return [
            f"{queue} at {committed.get(queue)} of {len(messages)}"
            for queue, messages in stored.items()
            if committed.get(queue, 0) != len(messages)
        ]

    async def _watch(self) -> None:
        """Looks again and again at what must hold at any time."""
        while True:
            invariants.offsets_pass_only_settled(self.journal, await self.observer.committed())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look_at_the_end(self) -> None:
        stored = await self.observer.stored()
        invariants.stored_is_dense_and_true(self.journal, stored)
        invariants.acknowledged_is_stored(self.journal, stored)
        invariants.acknowledged_is_consumed(self.journal)
        invariants.offsets_pass_only_settled(self.journal, await self.observer.committed())
