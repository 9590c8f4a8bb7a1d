"""Scenarios of transactions, by name and seed. Their messages are not visible before the commit,
come once after it, and no transaction stays open.

outcome = play("transactions-power", seed=17)      # raises Violation if that does not hold
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sprocket.base.errors import ReplyError, SprocketError, TransportError
from sprocket.broker.config import BrokerConfig
from sprocket.client.transactional_producer import Outcome as End
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.topic import CHECKS_EXHAUSTED, HALF
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.process import SimulatedProcess
from sprocket.testing.weather import Weather
from sprocket.transaction.half import SYSTEM_GROUP

TOPIC, QUEUES = "orders", 2
#: Messages of each member.
MESSAGES = 25
#: Most seconds of virtual time after the last fault until all transactions have ended.
QUIET_SECONDS_MAX = 300.0
_BROKER = BrokerConfig(
    transaction_timeout_ms=1_000, transaction_check_ms=1_000, transaction_checks_max=8
)
_SYNCED = replace(SMALL_STORE, flush="SYNC_FLUSH")


@dataclass(frozen=True, slots=True)
class Undecided:
    """A scenario of transactions.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather`, drawn with equal probability.
        store: settings of the broker's store.
    """

    doc: str
    faults: tuple[str, ...]
    store: StoreConfig = SMALL_STORE


TRANSACTED: dict[str, Undecided] = {
    "transactions": Undecided("Transactions end in every way, and nothing else goes wrong.", ()),
    "transactions-connections": Undecided(
        "Connections break, and links are cut or slow.", ("break", "break", "cut", "slow")
    ),
    "transactions-restarts": Undecided(
        "The broker is stopped or killed, and its clock jumps.",
        ("restart-broker", "kill-broker", "break", "clock"),
    ),
    "transactions-clocks": Undecided(
        "Wall clocks jump by seconds, hours and days, and are set right; the broker restarts.",
        ("jump", "jump", "jump", "restart-broker", "kill-broker", "kill-member", "join"),
    ),
    "transactions-members": Undecided(
        "Producers die during transactions, and others of their group are checked.",
        ("kill-member", "join", "break", "kill-broker"),
    ),
    "transactions-disk": Undecided(
        "The broker's disk is full, slow, or fails, and the broker ends.",
        ("disk-full", "disk-slow", "disk-error", "break"),
    ),
    "transactions-power": Undecided(
        "The broker loses its power; a send is answered when it is on the disk.",
        ("power-broker", "break"),
        store=_SYNCED,
    ),
    "transactions-storm": Undecided(
        "All of that at once, with a clock that jumps.",
        (
            "power-broker", "kill-broker", "clock", "disk-full", "disk-error", "kill-member",
            "join", "break", "cut",
        ),
        store=_SYNCED,
    ),
}  # fmt: skip


class _GoneWrong(Exception):
    """The sender's local transaction failed."""


@dataclass(slots=True)
class Truth:
    """The outcomes of local transactions, which the members share as in a database.

    Attributes:
        ends: outcome by key; absent while it is open, or if its process died.
        begun: keys whose half message was acknowledged.
    """

    ends: dict[str, End] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    async def check(self, message: StoredMessage) -> End:
        """The reply of a member to a check of a message."""
        await asyncio.sleep(0.05)
        return self.ends.get(message.keys[0], End.UNKNOWN)


def seen_only_after_commit(truth: Truth, seen: Sequence[str]) -> None:
    """Only committed messages are visible."""
    early = sorted(key for key in seen if truth.ends.get(key) is not End.COMMIT)
    if early:
        raise Violation(f"{early[0]} was seen before its commit, of {len(early)} that were")


def seen_once(seen: Sequence[str]) -> None:
    """No message is visible twice."""
    twice = sorted(key for key in set(seen) if seen.count(key) > 1)
    if twice:
        raise Violation(f"{twice[0]} was seen more than once, of {len(twice)} that were")


def ended_as_wanted(truth: Truth, seen: Sequence[str], parked: Sequence[str]) -> None:
    """At the end committed messages are visible, and those without an outcome are parked, once."""
    lost = {key for key in truth.begun if truth.ends.get(key) is End.COMMIT} - set(seen)
    if lost:
        raise Violation(f"{min(lost)} was committed and never seen, of {len(lost)} that were")
    for key in sorted(truth.begun):
        is_known = truth.ends.get(key, End.UNKNOWN) is not End.UNKNOWN
        if not is_known and parked.count(key) != 1:
            raise Violation(f"{key} has no end and is parked {parked.count(key)} times")


def parked_before_commit(seen: Mapping[str, int], parked: Mapping[str, int]) -> None:
    """No message is parked after its commit, though a parked message may be committed later.

    Args:
        seen, parked: log offsets by key.
    """
    late = sorted(key for key in seen.keys() & parked.keys() if parked[key] > seen[key])
    if late:
        raise Violation(f"{late[0]} was parked after its commit, of {len(late)} that were")


class _Members:
    """The producers of one group, as clients for `Weather`."""

    def __init__(self, cluster: Cluster, journal: Journal, entropy: SeededEntropy) -> None:
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self.truth = Truth()
        self._running: list[tuple[SimulatedProcess, asyncio.Task[None]]] = []
        self._leaving = asyncio.Event()
        self._count = 0

    @property
    def hosts(self) -> list[str]:
        return [process.host for process, _ in self._running]

    async def join(self) -> None:
        """Starts one more producer."""
        name = f"member{self._count}"
        self._count += 1
        process, world = self._cluster.client(name)
        producer = TransactionalProducer(
            "shop",
            nameservers=self._cluster.nameserver_addresses,
            world=world,
            check=self.truth.check,
        )
        work = self._work(producer, name, self._entropy.fork(name))
        self._running.append((process, process.start(work)))

    async def kill_member(self) -> None:
        """Kills a producer, unless it is the last."""
        if len(self._running) > 1:
            process, _ = self._running.pop(self._entropy.below(len(self._running)))
            self._cluster.network.kill(process)
            process.kill()

    async def leave(self) -> None:
        """Stops all in order."""
        self._leaving.set()
        await asyncio.gather(*(task for _, task in self._running))

    async def _work(
        self, producer: TransactionalProducer, name: str, entropy: SeededEntropy
    ) -> None:
        async with producer:
            for number in range(MESSAGES):
                await asyncio.sleep(entropy.between(0.0, 1.5))
                key = f"{name}-{number}"
                try:
                    await self._one(producer, key, entropy)
                except (SprocketError, _GoneWrong) as error:
                    self._journal.note(name, f"fails: {type(error).__name__}", key)
            await self._leaving.wait()

    async def _one(self, producer: TransactionalProducer, key: str, entropy: SeededEntropy) -> None:
        ends, who = self.truth.ends, key.partition("-")[0]
        self._journal.sending(who, key, key.encode())
        async with producer.transaction(Message(TOPIC, key.encode(), keys=[key])) as transaction:
            self.truth.begun.add(key)
            self._journal.note(who, "has begun", key)
            await asyncio.sleep(entropy.between(0.0, 2.0))
            fate = entropy.below(10)
            if fate < 5:
                ends[key] = End.COMMIT
            elif fate < 7:
                ends[key] = End.ROLLBACK
                raise _GoneWrong
            else:
                transaction.leave_open()
                ends[key] = (End.COMMIT, End.ROLLBACK, End.UNKNOWN)[fate - 7]
            self._journal.note(who, f"ends: {ends[key].name}", key)


class _TransactedRun:
    def __init__(self, scenario: Undecided, network: Network, seed: str) -> None:
        self._faults = scenario.faults
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.cluster = Cluster(network, seed, broker=_BROKER, store=scenario.store)
        self.members = _Members(self.cluster, self.journal, self.entropy.fork("members"))
        self.seen = Observer(self.cluster, TOPIC, QUEUES, group="g")
        self.halves = Observer(self.cluster, HALF, 1, group=SYSTEM_GROUP)
        self.parked = Observer(self.cluster, CHECKS_EXHAUSTED, 1, group="g")

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self.seen.create_topic()
        for _ in range(2):
            await self.members.join()
        watching = asyncio.ensure_future(self._watch())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        weather = Weather(
            self.cluster, self.members, entropy=self.entropy.fork("weather"), journal=self.journal
        )
        if self._faults:
            await weather.pass_over(self._faults, 5, seconds=30.0)
        await weather.clear()
        await asyncio.sleep(60)
        await self._until_all_ended(watching)
        for task in (watching, supervising):
            task.cancel()
        truth, seen = self.members.truth, await self._keys(self.seen)
        seen_only_after_commit(truth, seen)
        seen_once(seen)
        ended_as_wanted(truth, seen, await self._keys(self.parked))
        parked_before_commit(await self._places(self.seen), await self._places(self.parked))
        await self.members.leave()
        for observer in (self.seen, self.halves, self.parked):
            await observer.close()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            len(self.journal.bodies),
            len(truth.begun),
            len(seen),
            self.journal,
        )

    async def _keys(self, observer: Observer) -> list[str]:
        stored = await observer.stored()
        return [message.keys[0] for messages in stored.values() for message in messages]

    async def _places(self, observer: Observer) -> dict[str, int]:
        stored = await observer.stored()
        return {m.keys[0]: m.log_offset for messages in stored.values() for m in messages}

    async def _watch(self) -> None:
        """Checks every second the invariants that must always hold."""
        while True:
            await asyncio.sleep(1.0)
            try:
                seen = await self._keys(self.seen)
            except (TransportError, ReplyError):
                continue
            seen_only_after_commit(self.members.truth, seen)
            seen_once(seen)

    async def _until_all_ended(self, watching: asyncio.Future[None]) -> None:
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while True:
            if watching.done():
                await watching
            (stored,) = (await self.halves.stored()).values()
            done = sum((await self.halves.committed()).values())
            if done == len(stored):
                return
            if self.network.now() >= give_up:
                raise Violation(f"{len(stored) - done} half messages never ended")
            await asyncio.sleep(1.0)


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `TRANSACTED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _TransactedRun(TRANSACTED[name], network, words)
    )
