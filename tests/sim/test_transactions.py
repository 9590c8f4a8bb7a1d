"""Transactions through bad weather, over many seeds: unseen before, seen once after, none left."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sprocket.base.errors import ReplyError, SprocketError, TransportError
from sprocket.broker.config import BrokerConfig
from sprocket.client.transactional import Outcome, TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.process import Process
from sprocket.testing.weather import Weather
from sprocket.transaction.settle import Settlement

TOPIC, QUEUES = "orders", 2
HALF, PARKED, SYSTEM_GROUP = (
    "RMQ_SYS_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "CID_RMQ_SYS_TRANS",
)  # fmt: skip
BROKER = BrokerConfig(
    transaction_timeout_ms=1_000, transaction_check_ms=1_000, transaction_checks_max=8
)
MESSAGES = 25
QUIET_SECONDS_MAX = 300
WEATHERS: dict[str, tuple[tuple[str, ...], StoreConfig]] = {
    "fair": ((), SMALL_STORE),
    "connections": (("break", "break", "cut", "slow"), SMALL_STORE),
    "restarts": (("restart-broker", "kill-broker", "break", "clock"), SMALL_STORE),
    "members": (("kill-member", "join", "break", "kill-broker"), SMALL_STORE),
    "disk": (("disk-full", "disk-slow", "disk-error", "break"), SMALL_STORE),
    "power": (("power-broker", "break"), replace(SMALL_STORE, flush="SYNC_FLUSH")),
}


@pytest.fixture(autouse=True)
def _quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


class GoneWrong(Exception):
    """The sender's own work failed."""


@dataclass
class Truth:
    """What the members of the group share, as a database would: how the work of each ended.

    Attributes:
        ends: by key; absent while the work goes on, or if its process died.
        begun: whose half message was acknowledged.
    """

    ends: dict[str, Outcome] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    async def check(self, message: StoredMessage) -> Outcome:
        await asyncio.sleep(0.05)
        return self.ends.get(message.keys[0], Outcome.UNKNOWN)


class Members:
    """Producers of one group; what `Weather` needs of clients."""

    def __init__(self, cluster: Cluster, entropy: SeededEntropy) -> None:
        self.cluster = cluster
        self.entropy = entropy
        self.truth = Truth()
        self.running: list[tuple[Process, asyncio.Task[None]]] = []
        self.leaving = asyncio.Event()
        self.count = 0

    @property
    def hosts(self) -> list[str]:
        return [process.host for process, _ in self.running]

    async def join(self) -> None:
        name = f"member-{self.count}"
        self.count += 1
        process, world = self.cluster.client(name)
        producer = TransactionalProducer(
            "shop",
            nameservers=self.cluster.nameserver_addresses,
            world=world,
            check=self.truth.check,
        )
        work = self._work(producer, name, self.entropy.fork(name))
        self.running.append((process, process.start(work)))

    async def kill_member(self) -> None:
        if len(self.running) > 1:
            process, _ = self.running.pop(self.entropy.below(len(self.running)))
            self.cluster.network.kill(process)
            process.kill()

    async def leave(self) -> None:
        self.leaving.set()
        await asyncio.gather(*(task for _, task in self.running))

    async def _work(
        self, producer: TransactionalProducer, name: str, entropy: SeededEntropy
    ) -> None:
        async with producer:
            for number in range(MESSAGES):
                await asyncio.sleep(entropy.between(0.0, 1.5))
                try:
                    await self._one(producer, f"{name}-{number}", entropy)
                except (SprocketError, GoneWrong):
                    continue
            await self.leaving.wait()

    async def _one(self, producer: TransactionalProducer, key: str, entropy: SeededEntropy) -> None:
        ends = self.truth.ends
        async with producer.transaction(Message(TOPIC, key.encode(), keys=[key])) as transaction:
            self.truth.begun.add(key)
            await asyncio.sleep(entropy.between(0.0, 2.0))
            fate = entropy.below(10)
            if fate < 5:
                ends[key] = Outcome.COMMIT
            elif fate < 7:
                ends[key] = Outcome.ROLLBACK
                raise GoneWrong
            else:
                transaction.leave_open()
                ends[key] = (Outcome.COMMIT, Outcome.ROLLBACK, Outcome.UNKNOWN)[fate - 7]


class Run:
    """One history."""

    def __init__(self, network: Network, name: str, seed: int) -> None:
        self.faults, store = WEATHERS[name]
        self.network = network
        self.entropy = SeededEntropy(f"transactions {name} {seed}")
        self.cluster = Cluster(network, f"{name} {seed}", broker=BROKER, store=store)
        self.members = Members(self.cluster, self.entropy.fork("members"))
        self.seen = Observer(self.cluster, TOPIC, QUEUES, group="g")
        self.halves = Observer(self.cluster, HALF, 1, group=SYSTEM_GROUP)
        self.parked = Observer(self.cluster, PARKED, 1, group="g")

    async def play(self) -> tuple[int, int, int]:
        await self.cluster.start()
        await self.seen.create_topic()
        for _ in range(2):
            await self.members.join()
        watching = asyncio.ensure_future(self.watch())
        minding = asyncio.ensure_future(self.mind())
        clients: Any = self.members
        weather = Weather(
            self.cluster,
            clients,
            entropy=self.entropy.fork("weather"),
            journal=Journal(self.network),
        )
        if self.faults:
            await weather.pass_over(self.faults, 5, seconds=30.0)
        await weather.clear()
        await asyncio.sleep(60)
        await self.until_all_ended()
        watching.cancel()
        minding.cancel()
        result = await self.look_at_the_end()
        await self.members.leave()
        for observer in (self.seen, self.halves, self.parked):
            await observer.close()
        await self.cluster.stop()
        return result

    async def mind(self) -> None:
        """Starts a broker again that ended because its disk failed."""
        while True:
            await asyncio.sleep(1.0)
            for broker in self.cluster.brokers:
                if broker.is_running and broker.has_failed:
                    broker.kill()
                    await broker.start()

    async def keys(self, observer: Observer) -> list[str]:
        stored = await observer.stored()
        return [message.keys[0] for messages in stored.values() for message in messages]

    async def watch(self) -> None:
        """Nothing is seen whose sender did not want it to be, nor twice."""
        while True:
            await asyncio.sleep(1.0)
            try:
                seen = await self.keys(self.seen)
            except (TransportError, ReplyError):
                continue
            early = [k for k in seen if self.members.truth.ends.get(k) is not Outcome.COMMIT]
            assert not early, f"seen before its commit: {early}"
            assert len(seen) == len(set(seen)), f"seen twice: {sorted(seen)}"

    async def until_all_ended(self) -> None:
        give_up = self.network.now() + QUIET_SECONDS_MAX
        while True:
            (stored,) = (await self.halves.stored()).values()
            done = sum((await self.halves.committed()).values())
            if done == len(stored):
                return
            assert self.network.now() < give_up, f"{len(stored) - done} halves never ended"
            await asyncio.sleep(1.0)

    async def look_at_the_end(self) -> tuple[int, int, int]:
        truth = self.members.truth
        seen, parked = await self.keys(self.seen), await self.keys(self.parked)
        assert len(seen) == len(set(seen)), f"seen twice: {sorted(seen)}"
        wanted = {key for key in truth.begun if truth.ends.get(key) is Outcome.COMMIT}
        assert set(seen) == wanted, f"lost {wanted - set(seen)}, too many {set(seen) - wanted}"
        for key in truth.begun:
            if truth.ends.get(key, Outcome.UNKNOWN) is Outcome.UNKNOWN:
                assert parked.count(key) == 1, f"{key} is parked {parked.count(key)} times"
        assert not set(seen) & set(parked)
        return len(truth.begun), len(seen), len(parked)


def play(name: str, seed: int) -> tuple[int, int, int]:
    network = Network(f"transactions {name} {seed}")
    try:
        return simulate(lambda _: Run(network, name, seed).play(), network=network)
    except AssertionError as error:
        raise AssertionError(f"{name}, seed {seed}: {error}") from error


@pytest.mark.parametrize("name", WEATHERS)
def test_transactions_end_as_their_senders_say_whatever_the_weather(name: str) -> None:
    for seed in range(12):
        begun, seen, parked = play(name, seed)
        assert begun > seen > 0
        assert parked > 0 or name != "fair"


def play_several() -> None:
    for seed in range(10):
        play("restarts", seed)


def test_a_broker_that_forgets_what_has_ended_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settlement, "_is_committed", lambda self, found: False)
    monkeypatch.setattr(Settlement, "tell", lambda self: None)
    with pytest.raises(AssertionError, match=r"restarts, seed \d+: "):
        play_several()
