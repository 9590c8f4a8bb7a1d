"""Scenarios in which a slave stands for its master, and delivers what falls due at another one.

outcome = play("escaped", seed=17)      # raises Violation if an invariant does not hold

Producers send messages that wait to one master of two: with a delay level, for a time of their own,
and in transactions. That master is away again and again, for seconds or most of a minute.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sprocket.base.errors import ReplyError, TransportError
from sprocket.broker.config import BrokerConfig
from sprocket.client.transactional_producer import Outcome as End
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.clientcore.replies import SendStatus
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.nameserver.config import NameServerConfig
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Fates, Network
from sprocket.testing.observer import Observer
from sprocket.testing.sending import send_one_by_one

TOPIC, QUEUES = "orders", 2
#: Messages of each sender.
MESSAGES = 60
#: Delay levels in use with their delays, ms.
_LEVELS = {1: 1_000, 2: 5_000, 3: 10_000, 4: 30_000}
_LATEST_MS = 40_000
#: What the master delivered in the last moments, its slave may not have, s.
_UNCOPIED_SECONDS = 1.5
#: How late a message may come while a slave stands for the master, s, and how long after the loss.
_LATE_SECONDS, _LOSS_SECONDS = 4.0, 4.0
#: A slave that was asked what it has delivered delivers nothing for so long, s.
_GIVEN_SECONDS = 12.0
#: Most seconds of virtual time until all messages have come.
QUIET_SECONDS_MAX = 150.0


@dataclass(frozen=True, slots=True)
class Escaping:
    """A scenario.

    Attributes:
        doc: one sentence.
        away_seconds, back_seconds: the shortest and the longest time for which the master is away,
            and for which it is back.
        slow_seconds: added to the way between the slave and the other master.
        troubles: what happens besides while the master is away; then messages may come twice.
    """

    doc: str
    away_seconds: tuple[float, float] = (8.0, 45.0)
    back_seconds: tuple[float, float] = (5.0, 25.0)
    slow_seconds: float = 0.0
    troubles: tuple[str, ...] = ()


ESCAPED: dict[str, Escaping] = {
    "escaped": Escaping("A master is away, and its slave delivers at another one."),
    "escaped-return": Escaping(
        "The master is back while its slave is sending, which takes long.",
        away_seconds=(3.0, 15.0),
        back_seconds=(13.0, 25.0),
        slow_seconds=0.7,
    ),
    "escaped-troubles": Escaping(
        "The slave is killed, and the other master does not answer, too.",
        troubles=("slave", "slave", "other", "pause", "cut", "answers", "break"),
    ),
}


class _Absence(NamedTuple):
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class _Sent:
    """What the senders know.

    Attributes:
        dues_ms: due times by key.
        acknowledged: keys of messages that two brokers had.
        begun: keys of halves that two brokers had.
        ends: outcomes of transactions by key.
    """

    dues_ms: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    ends: dict[str, End] = field(default_factory=dict)

    async def check(self, message: StoredMessage) -> End:
        """The reply of a producer to a check of a message."""
        return self.ends.get(message.keys[0], End.UNKNOWN)


class _EscapedRun:
    def __init__(self, scenario: Escaping, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.sent = _Sent()
        self.cluster = Cluster(
            network,
            seed,
            brokers=2,
            slaves=1,
            nameserver=NameServerConfig(acting_masters=True),
            broker=BrokerConfig(
                role="SYNC_MASTER",
                copies=2,
                copies_min=1,
                registration_ms=2_000,
                transaction_timeout_ms=2_000,
                transaction_check_ms=1_000,
                acting_master=True,
                remote_escape=True,
            ),
        )
        self.master, self.other = self.cluster.brokers
        self.slave = self.cluster.slaves[0]
        self._absences: list[_Absence] = []
        self._observer = Observer(self.cluster, TOPIC, QUEUES, group="none")

    @property
    def _now_ms(self) -> int:
        return EPOCH_MS + int(self.network.now() * 1000)

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self._observer.create_topic()
        await asyncio.sleep(5)
        leaving = asyncio.Event()
        sending = [asyncio.ensure_future(self._send(f"sender{n}", leaving)) for n in range(2)]
        for _ in range(3):
            await asyncio.sleep(self.entropy.between(*self.scenario.back_seconds))
            await self._be_away()
        count = await self._until_all_came()
        leaving.set()
        await asyncio.gather(*sending)
        await self._observer.close()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            2 * MESSAGES,
            len(self.sent.acknowledged) + len(self.sent.begun),
            count,
            self.journal,
        )

    # Clients.

    async def _send(self, name: str, leaving: asyncio.Event) -> None:
        await send_one_by_one(
            self.cluster, name, leaving, count=MESSAGES, pause_max=2.0,
            entropy=self.entropy.fork(name), journal=self.journal, check=self.sent.check,
            send=self._send_one,
        )  # fmt: skip

    async def _send_one(
        self, producer: TransactionalProducer, key: str, entropy: SeededEntropy
    ) -> None:
        sent, kind = self.sent, entropy.below(4)
        sender, now_ms = key.partition("-")[0], self._now_ms
        self.journal.sending(sender, key, b"")
        message = Message(TOPIC, key.encode(), keys=[key])
        queue = QueueId(TOPIC, self.master.name, entropy.below(QUEUES))
        if kind == 3:
            async with producer.transaction(message, queue=queue) as transaction:
                sent.begun.add(key)
                await asyncio.sleep(entropy.between(0.0, 3.0))
                is_good = entropy.happens(0.7)
                sent.ends[key] = End.COMMIT if is_good else End.ROLLBACK
                if entropy.happens(0.5):
                    transaction.leave_open()
                elif not is_good:
                    transaction.roll_back()
            return
        if kind == 1:
            message.delay_level = 1 + entropy.below(len(_LEVELS))
            sent.dues_ms[key] = now_ms + _LEVELS[message.delay_level]
        else:
            message.deliver_at = now_ms + int(entropy.between(50, _LATEST_MS))
            sent.dues_ms[key] = message.deliver_at
        result = await producer.send(message, queue=queue, timeout_ms=4_000)
        if result.status is SendStatus.OK:
            sent.acknowledged.add(key)
            self.journal.note(sender, "is told OK of", key)

    # Absences.

    async def _be_away(self) -> None:
        """The master is away for some time."""
        since_ms = self._now_ms
        if self.entropy.happens(0.3):
            await self.master.stop()
        else:
            self.master.kill()
        until = self.network.now() + self.entropy.between(*self.scenario.away_seconds)
        if self.scenario.slow_seconds:
            self.network.slow(self.slave.name, self.other.name, self.scenario.slow_seconds)
        if self.scenario.troubles:
            await asyncio.sleep(self.entropy.between(0.0, 8.0))
            trouble = self.scenario.troubles[self.entropy.below(len(self.scenario.troubles))]
            self.journal.note("weather", trouble, "")
            await self._troubles()[trouble]()
        await asyncio.sleep(max(0.0, until - self.network.now()))
        self._absences.append(_Absence(since_ms, self._now_ms))
        if self.entropy.happens(0.5):  # else the slave is reached as slowly by its master
            self.network.heal()
        await self.master.start()
        self.network.heal()

    def _troubles(self) -> dict[str, Callable[[], Awaitable[None]]]:
        network, pause = self.network, self.entropy.between(0.5, 6.0)
        slave, other = self.slave, self.other

        async def kill_slave() -> None:
            slave.kill()
            await asyncio.sleep(pause)
            await slave.start()

        async def kill_other() -> None:
            other.kill()
            await asyncio.sleep(pause)
            await other.start()

        async def pause_other() -> None:
            other.pause()
            await asyncio.sleep(pause)
            other.wake()

        async def cut() -> None:
            network.cut(slave.name, other.name)
            await asyncio.sleep(pause)
            network.heal()

        async def lose_answers() -> None:
            network.distort(other.name, Fates(lost=0.3, twice=0.1, late=0.2, late_seconds=4.0))
            await asyncio.sleep(3 * pause)
            network.heal()

        async def break_connections() -> None:
            network.break_connections()

        return {
            "slave": kill_slave,
            "other": kill_other,
            "pause": pause_other,
            "cut": cut,
            "answers": lose_answers,
            "break": break_connections,
        }

    # The end.

    async def _until_all_came(self) -> int:
        """Waits until all messages are stored where they belong; returns how many are.

        Raises:
            Violation: that takes too long; or a message came early, late, or twice.
        """
        sent = self.sent
        await asyncio.sleep(2.0 * MESSAGES + _LATEST_MS / 1000 - self.network.now())
        give_up, missing = self.network.now() + QUIET_SECONDS_MAX, set[str]()
        while self.network.now() < give_up:
            await asyncio.sleep(1.0)
            try:
                stored = await self._observer.stored()
            except (TransportError, ReplyError):
                continue
            found = [(queue, each) for queue, some in stored.items() for each in some]
            missing = sent.acknowledged - {each.keys[0] for _, each in found}
            missing |= {key for key in sent.begun if sent.ends.get(key) is End.COMMIT} - {
                each.keys[0] for _, each in found
            }
            if not missing:
                await asyncio.sleep(10.0)
                self._check(await self._observer.stored())
                return len(found)
        raise Violation(f"{min(missing)} never came, of {len(missing)} that did not")

    def _check(self, stored: dict[QueueId, list[StoredMessage]]) -> None:
        copies: dict[str, list[tuple[str, StoredMessage]]] = {}
        for queue, some in stored.items():
            for each in some:
                copies.setdefault(each.keys[0], []).append((queue.broker, each))
        sent = self.sent
        for key, places in copies.items():
            for _, each in places:
                if each.stored_ms < sent.dues_ms.get(key, 0):
                    early_ms = sent.dues_ms[key] - each.stored_ms
                    raise Violation(f"{key} came {early_ms} ms early")
            if key in sent.begun and sent.ends.get(key) is not End.COMMIT:
                raise Violation(f"{key} was seen, and was never committed")
            if len(places) > 1 and not self._may_come_twice(places):
                brokers = Counter(broker for broker, _ in places)
                raise Violation(f"{key} was delivered more than once: {dict(brokers)}")
        if not self.scenario.troubles:
            self._check_lateness(copies)

    def _may_come_twice(self, places: list[tuple[str, StoredMessage]]) -> bool:
        """Whether the master delivered it so shortly before it was lost that its slave may not
        have known it, or worse things happened."""
        if self.scenario.troubles:
            return len(places) <= 1 + 3 * len(self._absences)
        first_ms = min(each.stored_ms for _, each in places)
        return len(places) == 2 and any(
            first_ms <= away.since_ms + 500 and away.since_ms - first_ms <= _UNCOPIED_SECONDS * 1000
            for away in self._absences
        )

    def _check_lateness(self, copies: dict[str, list[tuple[str, StoredMessage]]]) -> None:
        """What falls due while the master is away comes then."""
        if self.scenario.slow_seconds:
            return
        back_ms = 0
        for away in self._absences:
            since_ms = max(away.since_ms + _LOSS_SECONDS * 1000, back_ms + _GIVEN_SECONDS * 1000)
            for key in self.sent.acknowledged:
                due_ms = self.sent.dues_ms[key]
                if since_ms <= due_ms <= away.until_ms - _LATE_SECONDS * 1000:
                    came_ms = min(each.stored_ms for _, each in copies[key])
                    if came_ms > due_ms + _LATE_SECONDS * 1000:
                        raise Violation(f"{key} came {came_ms - due_ms} ms late")
            back_ms = away.until_ms


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `ESCAPED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(
        name, seed, lambda network, words: _EscapedRun(ESCAPED[name], network, words)
    )
