"""Scenarios in which a master is lost and one of its slaves becomes the master, by hand.

outcome = play("promotion", seed=17)      # raises Violation if an invariant does not hold

Producers send messages of all kinds: plain, delayed by a level, for a time of their own, and in
transactions. Then the master dies; a slave is stopped, or killed, and started as a master in its
folder; another slave follows it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sprocket.base.errors import ReplyError, TransportError
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.transactional_producer import Outcome as End
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.clientcore.replies import SendStatus
from sprocket.delay.levels.delivered import records_from
from sprocket.message.message import Message, StoredMessage
from sprocket.message.properties import decode_bytes
from sprocket.message.topic import SCHEDULE, TIMER
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.process import SimulatedProcess
from sprocket.testing.sending import send_one_by_one

TOPIC, QUEUES, GROUP = "orders", 2, "billing"
#: Messages of each sender.
MESSAGES = 50
#: So far offsets go back at most: the age of what a slave has of them, s.
OFFSETS_SECONDS = 1.0
#: A slave that is killed loses what it copied since it saved its offsets, s.
SAVED_SECONDS = 5.5
#: Most seconds of virtual time after the last message until all have come.
QUIET_SECONDS_MAX = 120.0
#: Delay levels in use with their delays, ms.
_LEVELS = {1: 1_000, 2: 5_000}
_LATEST_MS = 20_000


@dataclass(frozen=True, slots=True)
class Promotion:
    """A scenario of promotion.

    Attributes:
        doc: one sentence.
        slaves: how many; each becomes the master in turn, but for the last one.
        copies: copies that an acknowledged message has; 1: sends wait for no slave.
        bytes_per_second: how much of the log each slave gets; 0: all at once.
        body_bytes: the longest body.
    """

    doc: str
    slaves: int
    copies: int
    bytes_per_second: int = 0
    body_bytes: int = 1


PROMOTED: dict[str, Promotion] = {
    "promotion": Promotion("The one slave becomes the master.", slaves=1, copies=2),
    "promotion-again": Promotion(
        "A slave becomes the master, then the next one; each has every message.",
        slaves=3,
        copies=4,
    ),
    "promotion-lag": Promotion(
        "A slave whose log is seconds behind becomes the master.",
        slaves=1,
        copies=1,
        bytes_per_second=2_000,
        body_bytes=2_500,
    ),
}


@dataclass(slots=True)
class PromotionRecord:
    """What senders and the consumer know.

    Attributes:
        dues_ms: due times by key, of all messages that wait.
        acknowledged: keys of messages that had enough copies, and are no halves.
        ends: outcomes of transactions by key.
        consumed: keys in the order in which the consumer got them.
    """

    dues_ms: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    ends: dict[str, End] = field(default_factory=dict)
    consumed: list[str] = field(default_factory=list)

    async def check(self, message: StoredMessage) -> End:
        """The reply of a producer to a check of a message."""
        return self.ends.get(message.keys[0], End.UNKNOWN)


class _PromotedRun:
    def __init__(self, scenario: Promotion, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.record = PromotionRecord()
        self.cluster = Cluster(
            network,
            seed,
            slaves=scenario.slaves,
            broker=BrokerConfig(
                role="SYNC_MASTER" if scenario.copies > 1 else "ASYNC_MASTER",
                copies=scenario.copies,
                copies_min=1,
                registration_ms=2_000,
                transaction_timeout_ms=2_000,
                transaction_check_ms=1_000,
                replication_batch_bytes=2_048,
                replication_limit=bool(scenario.bytes_per_second),
                replication_bytes_per_second=scenario.bytes_per_second or 1 << 30,
            ),
        )
        self.master: Machine = self.cluster.brokers[0]
        self.copies = scenario.copies
        #: The master's offsets with their time, newest last.
        self._offsets: list[tuple[float, dict[tuple[str, int], int]]] = []
        self._observer = Observer(self.cluster, TOPIC, QUEUES, group=GROUP)
        self._consuming: SimulatedProcess | None = None

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self._observer.create_topic()
        await asyncio.sleep(5)
        leaving = asyncio.Event()
        consuming = self._consume(leaving)
        sending = [asyncio.ensure_future(self._send(f"sender{n}", leaving)) for n in range(2)]
        watching = asyncio.ensure_future(self._watch_offsets())
        for slave in self.cluster.slaves[: max(1, self.scenario.slaves - 1)]:
            await asyncio.sleep(self.entropy.between(8.0, 18.0))
            await self._promote(slave)
        await self._until_all_came()
        watching.cancel()
        leaving.set()
        await asyncio.gather(*sending, consuming)
        await self._observer.close()
        await self.cluster.stop()
        record = self.record
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            2 * MESSAGES,
            len(record.acknowledged) + len(record.begun),
            len(record.consumed),
            self.journal,
        )

    # Clients.

    def _consume(self, leaving: asyncio.Event) -> asyncio.Future[None]:
        process, world = self.cluster.client("consumer")
        consumer = PushConsumer(
            GROUP,
            nameservers=self.cluster.nameserver_addresses,
            config=ConsumerConfig(commit_ms=500, route_refresh_ms=1_000),
            start="first",
            world=world,
        )

        async def main() -> None:
            async with consumer:

                @consumer.on(TOPIC)
                async def count(message: StoredMessage) -> None:
                    self.record.consumed.append(message.keys[0])
                    self.journal.note("consumer", "gets", message.keys[0])

                await leaving.wait()

        return asyncio.ensure_future(process.start(main()))

    async def _send(self, name: str, leaving: asyncio.Event) -> None:
        await send_one_by_one(
            self.cluster, name, leaving, count=MESSAGES, pause_max=1.6,
            entropy=self.entropy.fork(name), journal=self.journal, check=self.record.check,
            send=self._send_one,
        )  # fmt: skip

    async def _send_one(
        self, producer: TransactionalProducer, key: str, entropy: SeededEntropy
    ) -> None:
        record, kind = self.record, entropy.below(4)
        now_ms = EPOCH_MS + int(self.journal.now * 1000)
        self.journal.sending(key.partition("-")[0], key, b"")
        body = key.encode() + bytes(entropy.below(self.scenario.body_bytes))
        message = Message(TOPIC, body, keys=[key])
        if kind == 3:
            async with producer.transaction(message) as transaction:
                record.begun.add(key)
                await asyncio.sleep(entropy.between(0.0, 2.0))
                record.ends[key] = End.COMMIT
                if entropy.happens(0.5):
                    transaction.leave_open()
            return
        if kind == 1:
            message.delay_level = 1 + entropy.below(len(_LEVELS))
            record.dues_ms[key] = now_ms + _LEVELS[message.delay_level]
        elif kind == 2:
            message.deliver_at = now_ms + int(entropy.between(50, _LATEST_MS))
            record.dues_ms[key] = message.deliver_at
        sent = await producer.send(message, timeout_ms=4_000)
        if sent.status is SendStatus.OK and self.copies > 1:
            record.acknowledged.add(key)
            self.journal.note(key.partition("-")[0], "is told OK of", key)

    # The change of masters.

    async def _promote(self, slave: Machine) -> None:
        lost, slaves = self.master, [each for each in self.cluster.slaves if each.is_running]
        lost.kill()
        killed_at = self.network.now()
        await asyncio.sleep(self.entropy.between(0.0, 3.0))
        is_killed = self.entropy.happens(0.5)
        if is_killed:
            slave.kill()
        else:
            await slave.stop()
        self.copies = min(self.scenario.copies, len(slaves))
        role = "SYNC_MASTER" if self.copies > 1 else "ASYNC_MASTER"
        await self.cluster.promote(slave, role=role, id=0, copies=self.copies)
        self.master = slave
        self.cluster.brokers[0] = slave
        self.journal.note(slave.name, "is the master now")
        self._check_offsets(slave, killed_at - (SAVED_SECONDS if is_killed else 0.0))
        self._expect_waiting(slave)

    def _last_offsets(self, machine: Machine) -> Iterator[tuple[tuple[str, int], int]]:
        offsets = machine.server._parts.tables.offsets
        for key in offsets.names():
            for number, offset in offsets.row(key).items():
                yield (key, number), offset

    async def _watch_offsets(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            if self.master.is_running:
                now, offsets = self.network.now(), dict(self._last_offsets(self.master))
                self._offsets = [
                    *(each for each in self._offsets if each[0] > now - 2 * SAVED_SECONDS),
                    (now, offsets),
                ]

    def _check_offsets(self, slave: Machine, saved_at: float) -> None:
        """A promoted slave has offsets that are not older than a second, and none beyond its
        messages.

        Args:
            saved_at: when the slave saved its offsets at the latest.

        Raises:
            Violation: it has not.
        """
        server = slave.server
        found = dict(self._last_offsets(slave))
        old = [each for at, each in self._offsets if at <= saved_at - OFFSETS_SECONDS]
        for (key, number), offset in old[-1].items() if old and self._is_prompt else ():
            if found.get((key, number), -1) < offset:
                raise Violation(
                    f"queue {number} of {key} is at {found.get((key, number))}, and was at {offset}"
                )
        for (key, number), offset in found.items():
            topic = key.partition("@")[0]
            if offset > server._store.max_offset(topic, number):
                raise Violation(f"queue {number} of {key} is at {offset}, beyond its messages")

    @property
    def _is_prompt(self) -> bool:
        """Whether slaves have the log as soon as it grows, so that they have the state as well."""
        return not self.scenario.bytes_per_second

    def _expect_waiting(self, slave: Machine) -> None:
        """Whatever waits in the log of the new master has to come, acknowledged or not."""
        store = slave.server._store
        for record in records_from(store, 0):
            if record.topic in (SCHEDULE, TIMER):
                self.record.acknowledged.add(decode_bytes(bytes(record.properties))["KEYS"])

    # The end.

    async def _stored(self) -> list[StoredMessage]:
        stored = await self._observer.stored()
        return [message for messages in stored.values() for message in messages]

    async def _until_all_came(self) -> None:
        """Waits until all messages are stored where they belong, and were consumed.

        Raises:
            Violation: that takes too long; or a message came early, or twice.
        """
        await asyncio.sleep(1.6 * MESSAGES + _LATEST_MS / 1000)
        give_up = self.network.now() + QUIET_SECONDS_MAX
        record, missing = self.record, set[str]()
        while self.network.now() < give_up:
            await asyncio.sleep(1.0)
            try:
                stored = await self._stored()
            except (TransportError, ReplyError):
                continue
            self._check(stored)
            keys = {message.keys[0] for message in stored}
            missing = record.acknowledged - keys
            if self.scenario.copies > 1:  # else what is lost may have been consumed before
                committed = {key for key in record.begun if record.ends.get(key) is End.COMMIT}
                missing |= committed - keys
                missing |= keys - set(record.consumed)
            if not missing:
                return
        raise Violation(f"{min(missing)} never came, of {len(missing)} that did not")

    def _check(self, stored: list[StoredMessage]) -> None:
        record = self.record
        twice = sorted(k for k, n in Counter(m.keys[0] for m in stored).items() if n > 1)
        if twice:
            raise Violation(f"{twice[0]} was delivered more than once, of {len(twice)}")
        for message in stored:
            key = message.keys[0]
            if message.stored_ms < record.dues_ms.get(key, 0):
                raise Violation(f"{key} came {record.dues_ms[key] - message.stored_ms} ms early")
            if key in record.begun and record.ends.get(key) is not End.COMMIT:
                raise Violation(f"{key} was seen before its commit")


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `PROMOTED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _PromotedRun(PROMOTED[name], network, words)
    )
