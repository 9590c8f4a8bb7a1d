"""Scenarios of staged batches, by name and seed. Each transaction of a writer is seen once, whole,
and from one of the attempts to make it, whatever is killed.

outcome = play("staged-power", seed=17)      # raises Violation if that does not hold
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ReplyError, SprocketError, TransportError
from sprocket.broker.config import BrokerConfig
from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList, AttemptsElsewhere
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.staged import Published, PublishStaged, StageBatch
from sprocket.remoting.pool import Pool
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import BROKER_PORT, SMALL_STORE, Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.weather import SteadyClients, Weather

TOPIC, QUEUES, WRITER = "rows", 2, "query"
TRANSACTIONS = 16
#: Most seconds of virtual time until all transactions are made.
SECONDS_MAX = 900.0
_SYNCED = replace(SMALL_STORE, flush="SYNC_FLUSH")


@dataclass(frozen=True, slots=True)
class StagedScenario:
    """A scenario of staged batches.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather`, drawn with equal probability.
        brokers: at which the rows of a transaction are.
        promotes: whether the master dies, and its slave, which has all of its log, takes its place.
        store: settings of the broker's store.
        sync_seconds: the shortest and the longest time of a sync of its disk.
    """

    doc: str
    faults: tuple[str, ...]
    brokers: int = 1
    promotes: bool = False
    store: StoreConfig = SMALL_STORE
    sync_seconds: tuple[float, float] = (0.0005, 0.02)


STAGED: dict[str, StagedScenario] = {
    "staged": StagedScenario("A writer's tasks and its driver die, and nothing else.", ()),
    "staged-kills": StagedScenario(
        "The broker is killed and restarted too, and connections break.",
        ("kill-broker", "kill-broker", "restart-broker", "break", "cut", "slow"),
    ),
    "staged-power": StagedScenario(
        "The broker loses its power; a reply comes when all is on the disk.",
        ("power-broker", "power-broker", "power-broker", "break"),
        store=_SYNCED,
        sync_seconds=(0.1, 0.6),
    ),
    "staged-disk": StagedScenario(
        "The broker's disk is full, slow, or fails, and its clock jumps.",
        ("disk-full", "disk-slow", "disk-error", "clock", "kill-broker"),
    ),
    "staged-brokers": StagedScenario(
        "The rows are at several brokers, which are killed, of which the first decides.",
        ("kill-broker", "kill-broker", "restart-broker", "break", "cut", "slow"),
        brokers=3,
    ),
    "staged-brokers-power": StagedScenario(
        "The same, and brokers lose their power; a reply comes when all is on the disk.",
        ("power-broker", "power-broker", "kill-broker", "break"),
        brokers=2,
        store=_SYNCED,
        sync_seconds=(0.1, 0.6),
    ),
    "staged-promotion": StagedScenario(
        "The master dies, and its slave becomes the master.", (), promotes=True
    ),
}


class _Killed(Exception):
    """The driver died."""


class _Driver(SteadyClients):
    """Makes a writer's transactions one after the other, as Spark makes micro-batches."""

    def __init__(self, run: _StagedRun, entropy: SeededEntropy) -> None:
        self._run = run
        self._entropy = entropy
        self._pool = Pool()
        self._tries = 0
        self._process, _ = run.cluster.client("driver")
        self.hosts = [self._process.host]
        #: How many rows each transaction has that was made.
        self.made: list[int] = []

    async def close(self) -> None:
        """Closes its connections."""
        await self._pool.close()

    async def work(self) -> None:
        """Makes all of them, each again and again until the broker says that it is published."""
        await self._process.start(self._make_all())

    async def _make_all(self) -> None:
        for batch_id in range(TRANSACTIONS):
            await asyncio.sleep(self._entropy.between(0.0, 4.0))
            rows = 1 + self._entropy.below(100)
            while not await self._try(batch_id, rows):
                pass
            self.made.append(rows)

    async def _try(self, batch_id: int, rows: int) -> bool:
        try:
            await self._publish(batch_id, await self._stage(batch_id, rows))
        except (SprocketError, _Killed) as error:
            self._run.journal.note("driver", f"begins {batch_id} again", repr(error)[:80])
            await asyncio.sleep(self._entropy.between(0.0, 2.0))
            return False
        self._run.journal.note("driver", "has made", str(batch_id))
        return True

    async def _stage(self, batch_id: int, rows: int) -> list[AttemptsElsewhere]:
        """Stages the rows in tasks, each time in other ones, and some of them twice.

        Returns:
            The attempts that count, of each broker.
        """
        self._tries += 1
        shares = [AttemptsElsewhere(broker=str(n), attempts=[]) for n in range(self._run.brokers)]
        bodies = [f"{batch_id}:{row}:{self._tries}" for row in range(rows)]
        tasks = 0
        while bodies:
            count = 1 + self._entropy.below(len(bodies))
            name = f"{self._tries}-{tasks}"
            tasks += 1
            if self._entropy.happens(0.3):
                await self._stage_task(batch_id, f"{name}-lost", bodies[:count])
            requests = await self._stage_task(batch_id, name, bodies[:count])
            for broker, number in requests.items():
                shares[broker].attempts.append(AttemptEntry(name=name, requests=number))
            bodies = bodies[count:]
            if self._entropy.happens(0.05):
                raise _Killed
        return shares

    async def _stage_task(self, batch_id: int, name: str, bodies: Sequence[str]) -> Counter[int]:
        """Stages some rows; returns how many requests each broker got."""
        requests: Counter[int] = Counter()
        while bodies:
            count = 1 + self._entropy.below(50)
            body = encode(
                BatchedMessage(0, one.encode(), f"UNIQ_KEY\x01{name}-{one}\x02WAIT\x01true\x02")
                for one in bodies[:count]
            )
            bodies = bodies[count:]
            broker = self._entropy.below(self._run.brokers)
            for _ in range(1 + self._entropy.below(2)):  # a reply that was lost, now and then
                header = StageBatch(
                    topic=TOPIC, queue_id=self._entropy.below(QUEUES), born_timestamp=1,
                    writer=WRITER, batch_id=batch_id, attempt=name, number=requests[broker],
                )  # fmt: skip
                await self._ask(header, body, broker)
            requests[broker] += 1
        return requests

    async def _publish(self, batch_id: int, shares: Sequence[AttemptsElsewhere]) -> None:
        """Checks at the other brokers, has the first one decide, and the others follow."""
        first, *others = shares
        for each in others:
            await self._publish_at(batch_id, each, checks_only=True)
        asked = AttemptsElsewhere(broker=first.broker, attempts=first.attempts)
        decided = await self._publish_at(batch_id, asked, elsewhere=others)
        for each in decided if decided is not None else others:
            await self._publish_at(batch_id, each)

    async def _publish_at(
        self,
        batch_id: int,
        share: AttemptsElsewhere,
        *,
        elsewhere: Sequence[AttemptsElsewhere] = (),
        checks_only: bool = False,
    ) -> list[AttemptsElsewhere] | None:
        """Returns when a broker has published; if it had decided before, what others publish."""
        body = AttemptList(attempts=share.attempts, elsewhere=list(elsewhere)).encode()
        broker = int(share.broker)
        header = PublishStaged(
            writer=WRITER, batch_id=batch_id, is_first=batch_id == 0 or broker > 0,
            decided_by="0" if broker else None, checks_only=checks_only, waits=not checks_only,
        )  # fmt: skip
        was_decided = False
        while True:
            if self._entropy.happens(0.2 / self._run.brokers):
                asking = asyncio.ensure_future(self._ask(header, body, broker))
                await asyncio.sleep(self._entropy.between(0.0, 0.01))
                asking.cancel()
                await asyncio.wait([asking])
                raise _Killed
            reply = await self._ask(header, body, broker)
            published = reply.read(Published)
            was_decided = was_decided or published.is_repeat
            if published.is_finished or checks_only:
                found = AttemptList.decode(reply.body or b"{}").elsewhere
                return found if was_decided else None

    async def _ask(self, header: Header, body: bytes, broker: int) -> Command:
        address = f"{self._run.cluster.brokers[broker].address}:{BROKER_PORT}"
        reply = await self._pool.call(address, header, body=body, deadline=Deadline.after(6))
        return reply.checked()


class _StagedRun:
    def __init__(self, scenario: StagedScenario, network: Network, seed: str) -> None:
        self._scenario = scenario
        self.brokers = scenario.brokers
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        copies = {"role": "SYNC_MASTER", "copies": 2, "copies_min": 1} if scenario.promotes else {}
        self.cluster = Cluster(
            network, seed, brokers=scenario.brokers, store=scenario.store,
            slaves=int(scenario.promotes),
            broker=BrokerConfig(**copies),  # type: ignore[arg-type]
            sync_seconds=scenario.sync_seconds,
        )  # fmt: skip
        self.seen = Observer(self.cluster, TOPIC, QUEUES, group="g")
        self.driver = _Driver(self, self.entropy.fork("driver"))

    async def play(self) -> HistoryOutcome:
        await self.cluster.start()
        await self.seen.create_topic()
        await asyncio.sleep(5)
        watching = asyncio.ensure_future(self._watch())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        making = asyncio.ensure_future(self.driver.work())
        await self._trouble()
        await asyncio.wait([making, watching], timeout=SECONDS_MAX, return_when="FIRST_COMPLETED")
        if watching.done():
            await watching
        if not making.done():
            raise Violation(f"{len(self.driver.made)} of {TRANSACTIONS} transactions are made")
        await making
        for task in (watching, supervising):
            task.cancel()
        seen = await self._last_rows()
        seen_once(seen)
        seen_whole(self.driver.made, seen)
        await self.driver.close()
        await self.seen.close()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            sum(self.driver.made),
            len(self.driver.made),
            len(seen),
            self.journal,
        )

    async def _trouble(self) -> None:
        if self._scenario.promotes:
            await asyncio.sleep(self.entropy.between(1.0, 20.0))
            (slave,) = self.cluster.slaves
            self.cluster.brokers[0].kill()
            await slave.stop()
            await self.cluster.promote(slave, role="ASYNC_MASTER", id=0, copies=1)
            self.cluster.brokers[0] = slave
        weather = Weather(
            self.cluster, self.driver, entropy=self.entropy.fork("weather"), journal=self.journal
        )
        if self._scenario.faults:
            await weather.pass_over(self._scenario.faults, 8, seconds=40.0)
        await weather.clear()

    async def _rows(self) -> list[tuple[int, int, int]]:
        """Transaction, row and attempt of what consumers see."""
        stored = await self.seen.stored()
        bodies = [message.body.decode() for messages in stored.values() for message in messages]
        return [(int(a), int(b), int(c)) for a, b, c in (body.split(":") for body in bodies)]

    async def _last_rows(self) -> list[tuple[int, int, int]]:
        """The same once the broker, which may be starting, answers."""
        while True:
            try:
                return await self._rows()
            except (TransportError, ReplyError):
                if self.network.now() > SECONDS_MAX:
                    raise
                await asyncio.sleep(1.0)

    async def _watch(self) -> None:
        """Checks every second the invariants that must always hold."""
        while True:
            await asyncio.sleep(1.0)
            try:
                seen_once(await self._rows())
            except (TransportError, ReplyError):
                continue


def seen_once(seen: Sequence[tuple[int, int, int]]) -> None:
    """No row is visible twice, and all of a transaction come from one attempt to make it."""
    rows = Counter((batch_id, row) for batch_id, row, _ in seen)
    if twice := sorted(key for key, count in rows.items() if count > 1):
        raise Violation(f"row {twice[0]} was seen more than once, of {len(twice)} that were")
    attempts: dict[int, set[int]] = {}
    for batch_id, _, attempt in seen:
        attempts.setdefault(batch_id, set()).add(attempt)
    if mixed := sorted(key for key, names in attempts.items() if len(names) > 1):
        raise Violation(f"transaction {mixed[0]} was seen from several attempts")


def seen_whole(made: Sequence[int], seen: Sequence[tuple[int, int, int]]) -> None:
    """At the end all rows of all transactions are visible."""
    wanted = {(batch_id, row) for batch_id, rows in enumerate(made) for row in range(rows)}
    if lost := wanted - {(batch_id, row) for batch_id, row, _ in seen}:
        raise Violation(f"row {min(lost)} was never seen, of {len(lost)} that were not")


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `STAGED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(name, seed, lambda network, words: _StagedRun(STAGED[name], network, words))
