"""Scenarios of messages that wait for a time of their own, by name and seed.

outcome = play("timers-power", seed=17)      # raises Violation if an invariant does not hold
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sprocket.base.errors import ReplyError, SprocketError, TransportError
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.weather import SteadyClients, Weather

TOPIC, QUEUES = "reminders", 2
MESSAGES = 40
#: Most seconds of virtual time after the last fault until all have come; clocks may be a minute
#: behind.
QUIET_SECONDS_MAX = 300.0
_SMALL = replace(SMALL_STORE, timer_file_bytes=4096, timer_roll_slots=8)


@dataclass(frozen=True, slots=True)
class TimerScenario:
    """A scenario of timed messages.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather`, drawn with equal probability.
        count: number of faults.
        store: settings of the broker's store.
        sync_seconds: the shortest and the longest time of a sync of its disk.
    """

    doc: str
    faults: tuple[str, ...]
    count: int = 6
    store: StoreConfig = _SMALL
    sync_seconds: tuple[float, float] = (0.0005, 0.02)


TIMED: dict[str, TimerScenario] = {
    "timers": TimerScenario("Messages wait for times of their own, and nothing goes wrong.", ()),
    "timers-kills": TimerScenario(
        "The broker is killed, or stopped in order, and its clock jumps.",
        ("kill-broker", "kill-broker", "restart-broker", "clock", "pause-broker"),
    ),
    "timers-clock": TimerScenario(
        "The broker's clock jumps back and forth, also while it is down.",
        ("clock", "clock", "restart-broker"),
    ),
    "timers-power": TimerScenario(
        "The broker loses its power; a send is answered when it is on the disk.",
        ("power-broker", "power-broker", "kill-broker", "clock"),
        store=replace(_SMALL, flush="SYNC_FLUSH"),
        sync_seconds=(0.005, 0.3),
    ),
    "timers-disk": TimerScenario(
        "The broker's disk is full, slow, or fails, and the broker ends.",
        ("disk-full", "disk-slow", "disk-error", "kill-broker"),
        store=replace(_SMALL, flush="SYNC_FLUSH"),
    ),
}


@dataclass(slots=True)
class Promises:
    """What senders know.

    Attributes:
        dues_ms: due times by key, of all messages that anybody tried to send.
        acknowledged: keys of acknowledged messages.
        taken_back: keys of acknowledged recalls.
        tried_back: keys of all recalls that were tried.
    """

    dues_ms: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    taken_back: set[str] = field(default_factory=set)
    tried_back: set[str] = field(default_factory=set)


def never_early(promises: Promises, came: Sequence[StoredMessage]) -> None:
    """By the broker's clock, no message came before its time."""
    for message in came:
        key = message.keys[0]
        at_ms = int(message.properties.get("TIMER_DEQUEUE_MS", message.stored_ms))
        if at_ms < promises.dues_ms[key]:
            raise Violation(f"{key} came {promises.dues_ms[key] - at_ms} ms early")


def delivered_once(came: Sequence[StoredMessage]) -> None:
    """No message came twice."""
    twice = sorted(key for key, n in Counter(m.keys[0] for m in came).items() if n > 1)
    if twice:
        raise Violation(f"{twice[0]} came more than once, of {len(twice)} that did")


def taken_back_stays_away(promises: Promises, came: Sequence[StoredMessage]) -> None:
    """No message comes whose recall was acknowledged."""
    seen = sorted(promises.taken_back & {message.keys[0] for message in came})
    if seen:
        raise Violation(f"{seen[0]} was taken back and came, of {len(seen)} that did")


def nothing_is_lost(promises: Promises, came: Sequence[StoredMessage]) -> None:
    """At the end all acknowledged messages have come for which no recall was tried."""
    lost = promises.acknowledged - promises.tried_back - {message.keys[0] for message in came}
    if lost:
        raise Violation(f"{min(lost)} was acknowledged and never came, of {len(lost)} that did not")


class _Senders(SteadyClients):
    """Two producers, as clients for `Weather`."""

    def __init__(self, cluster: Cluster, journal: Journal, entropy: SeededEntropy) -> None:
        self._cluster = cluster
        self._journal = journal
        self._entropy = entropy
        self.promises = Promises()
        self.hosts: list[str] = []

    async def work(self, name: str) -> None:
        """Sends messages, and recalls some of them."""
        process, world = self._cluster.client(name)
        self.hosts.append(process.host)
        await process.start(self._send_all(name, world))

    async def _send_all(self, name: str, world: object) -> None:
        # With one attempt, a message that is not acknowledged was stored once or not at all.
        producer = Producer(
            "senders",
            nameservers=self._cluster.nameserver_addresses,
            config=ProducerConfig(retries=0),
            world=world,  # type: ignore[arg-type]
        )
        entropy = self._entropy.fork(name)
        async with producer:
            for number in range(MESSAGES):
                await asyncio.sleep(entropy.between(0.0, 1.0))
                try:
                    await self._send(producer, f"{name}-{number}", entropy)
                except SprocketError as error:
                    self._journal.note(name, f"fails: {type(error).__name__}", f"{name}-{number}")

    async def _send(self, producer: Producer, key: str, entropy: SeededEntropy) -> None:
        promises = self.promises
        now_ms = EPOCH_MS + int(self._journal.now * 1000)
        due_ms = now_ms + int(entropy.between(50, 25_000))
        promises.dues_ms[key] = due_ms
        self._journal.bodies[key] = key.encode()
        sent = await producer.send(
            Message(TOPIC, key.encode(), keys=[key], deliver_at=due_ms), timeout_ms=3_000
        )
        promises.acknowledged.add(key)
        self._journal.note(key.partition("-")[0], f"gets due time {due_ms} for", key)
        if sent.recall_handle and entropy.happens(0.2):
            promises.tried_back.add(key)
            await producer.recall(TOPIC, sent.recall_handle, timeout_ms=3_000)
            promises.taken_back.add(key)
            self._journal.note(key.partition("-")[0], "takes back", key)


class _TimedRun:
    def __init__(self, scenario: TimerScenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.cluster = Cluster(
            network, seed, store=scenario.store, sync_seconds=scenario.sync_seconds
        )
        self.senders = _Senders(self.cluster, self.journal, self.entropy.fork("work"))
        self.observer = Observer(self.cluster, TOPIC, QUEUES, group="g")

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self.observer.create_topic()
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
        came = await self._until_all_came(watching)
        for task in (watching, supervising):
            task.cancel()
        self._check(came)
        nothing_is_lost(self.senders.promises, came)
        await self.observer.close()
        await self.cluster.stop()
        promises = self.senders.promises
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            len(promises.dues_ms),
            len(promises.acknowledged),
            len(came),
            self.journal,
        )

    def _check(self, came: Sequence[StoredMessage]) -> None:
        never_early(self.senders.promises, came)
        delivered_once(came)
        taken_back_stays_away(self.senders.promises, came)

    async def _came(self) -> list[StoredMessage]:
        stored: Mapping[QueueId, Sequence[StoredMessage]] = await self.observer.stored()
        return [message for messages in stored.values() for message in messages]

    async def _watch(self) -> None:
        """Checks every second the invariants that must always hold."""
        while True:
            await asyncio.sleep(1.0)
            try:
                self._check(await self._came())
            except (TransportError, ReplyError):
                continue

    async def _until_all_came(self, watching: asyncio.Future[None]) -> list[StoredMessage]:
        """Waits until all messages are due by the broker's clock and have come."""
        give_up = self.network.now() + QUIET_SECONDS_MAX
        promises = self.senders.promises
        (broker,) = self.cluster.brokers
        while True:
            if watching.done():
                await watching
            try:
                came = await self._came()
            except (TransportError, ReplyError):
                await asyncio.sleep(1.0)
                continue
            missing = promises.acknowledged - promises.tried_back - {m.keys[0] for m in came}
            is_due = broker.clock.now_ms() > max(promises.dues_ms.values()) + 2_000
            if (is_due and not missing) or self.network.now() > give_up:
                return came
            await asyncio.sleep(1.0)


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `TIMED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(name, seed, lambda network, words: _TimedRun(TIMED[name], network, words))
