"""Scenarios of pop consumption, by name and seed.

outcome = play("pops-kills", seed=17)      # raises Violation if an invariant does not hold
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sprocket.base.deadline import Deadline
from sprocket.base.errors import TransportError
from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import PopHandle, kind_of, read_offsets, topic_of
from sprocket.message.record import scan
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.pop import (
    AckMessage,
    ChangeInvisible,
    InvisibleReply,
    PopMessage,
    PopReply,
)
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.remoting.pool import Pool
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import BROKER_PORT, SMALL_STORE, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.pop_record import Held, PopRecord
from sprocket.testing.popped_brokers import PoppedBrokers
from sprocket.testing.weather import SteadyClients, Weather

TOPIC, GROUP, QUEUES = "tasks", "workers", 2
MESSAGES, MEMBERS = 40, 3
#: Most seconds of virtual time after the last fault until all are done.
QUIET_SECONDS_MAX = 300.0
_CALL_SECONDS, _HOLD_MS = 6.0, 2_000
#: Timers in small files, that roll what waits for more than eight seconds.
_SMALL = replace(SMALL_STORE, timer_file_bytes=4096, timer_roll_slots=8)
_SYNCED = replace(_SMALL, flush="SYNC_FLUSH")


@dataclass(frozen=True, slots=True)
class PopScenario:
    """A scenario of pop consumption.

    Attributes:
        doc: one sentence.
        faults: names of faults of `weather`, drawn with equal probability.
        is_order: whether the group pops in order.
        keeps_time: whether the broker's clock only runs on, so that times can be compared.
        store: settings of the broker's store.
        sync_seconds: the shortest and the longest time of a sync of its disk.
        members: how many brokers; more than one elect their master.
    """

    doc: str
    faults: tuple[str, ...]
    is_order: bool = False
    keeps_time: bool = True
    count: int = 6
    store: StoreConfig = _SMALL
    sync_seconds: tuple[float, float] = (0.0005, 0.02)
    members: int = 1


_KILLS = ("kill-broker", "kill-broker", "restart-broker", "pause-broker", "break")

_FAILOVERS = (*_KILLS, "kill-broker", "cut")

POPPED: dict[str, PopScenario] = {
    "pops": PopScenario("A group pops, acknowledges and forgets; nothing goes wrong.", ()),
    "pops-kills": PopScenario("The broker is killed, or stopped in order.", _KILLS),
    "pops-network": PopScenario(
        "Connections break, and requests and answers are lost, doubled or late.",
        ("break", "cut", "slow", "freeze", "restart-broker"),
    ),
    "pops-power": PopScenario(
        "The broker loses its power; an acknowledgement is answered when it is on the disk.",
        ("power-broker", "power-broker", "kill-broker", "break"),
        store=_SYNCED,
        sync_seconds=(0.005, 0.3),
    ),
    "pops-clock": PopScenario(
        "The broker's clock jumps back and forth, also while it is down.",
        ("clock", "clock", "restart-broker", "kill-broker"),
        keeps_time=False,
    ),
    "pops-disk": PopScenario(
        "The broker's disk is full, slow, or fails, and the broker ends.",
        ("disk-full", "disk-slow", "disk-error", "kill-broker"),
        store=_SYNCED,
    ),
    "pops-order": PopScenario("The same group pops in order.", _KILLS, is_order=True),
    "pops-order-power": PopScenario(
        "It pops in order, and the broker loses its power.",
        ("power-broker", "power-broker", "kill-broker", "break"),
        is_order=True,
        store=_SYNCED,
        sync_seconds=(0.005, 0.3),
    ),
    "pops-failover": PopScenario(
        "The master is killed, stopped, cut off or stands still, and another member leads.",
        _FAILOVERS,
        members=3,
    ),
    "pops-order-failover": PopScenario(
        "The same, and the group pops in order.", _FAILOVERS, is_order=True, members=3
    ),
    "pops-failover-power": PopScenario(
        "Members lose their power, which takes what is not on their disks.",
        ("power-broker", "power-broker", "kill-broker", "break"),
        is_order=True,
        store=_SYNCED,
        sync_seconds=(0.005, 0.1),
        members=3,
    ),
}


class _Poppers(SteadyClients):
    """Producer and members of the group, as clients for `Weather`."""

    def __init__(
        self, scenario: PopScenario, brokers: PoppedBrokers, journal: Journal,
        entropy: SeededEntropy,
    ) -> None:  # fmt: skip
        self._scenario = scenario
        self._brokers = brokers
        self._cluster = brokers.cluster
        self._journal = journal
        self._entropy = entropy
        self.record = PopRecord(scenario.is_order, scenario.keeps_time)
        self.sent: set[str] = set()
        self.tried = 0
        self.hosts: list[str] = []
        self.is_careful = False
        self.is_over = False

    @property
    def missing(self) -> set[str]:
        """Messages that are stored, and not done."""
        held = self.record.held
        return {
            key
            for key in self.sent
            if key not in held or not (held[key].is_done or held[key].is_unsure)
        }

    async def send_all(self) -> None:
        """Sends the messages; with one attempt, each is stored once or not at all."""
        process, _ = self._cluster.client("sender")
        self.hosts.append(process.host)

        async def work() -> None:
            pool = Pool(entropy=self._entropy.fork("sender"))
            for number in range(MESSAGES):
                await asyncio.sleep(self._entropy.between(0.0, 1.2))
                await self._send(pool, number)
            await pool.close()

        await process.start(work())

    async def _send(self, pool: Pool, number: int) -> None:
        self.tried += 1
        key = f"task-{number}"
        header = SendMessageV2(
            producer_group="senders", topic=TOPIC, queue_id=number % QUEUES, born_timestamp=1,
            properties=f"KEYS\x01{key}\x02",
        )  # fmt: skip
        reply = await self._ask(pool, header, key.encode())
        if reply is None or reply.code:
            self._journal.note("sender", f"fails: {reply and reply.code}", key)
        else:
            self.sent.add(key)
            self._journal.note("sender", "stores", key)

    async def work(self, name: str) -> None:
        """Pops until all is over."""
        process, _ = self._cluster.client(name)
        self.hosts.append(process.host)
        await process.start(self._work(name, self._entropy.fork(name)))

    async def _work(self, name: str, entropy: SeededEntropy) -> None:
        pool = Pool(entropy=entropy)
        while not self.is_over:
            header = PopMessage(
                consumer_group=GROUP,
                topic=TOPIC,
                queue_id=-1,
                max_msg_nums=1 + entropy.below(6),
                invisible_time=int(entropy.between(2_000, 15_000)),
                poll_time=_HOLD_MS,
                born_time=0,
                init_mode=0,
                order=self._scenario.is_order,
                attempt_id=f"{name}-{entropy.below(1 << 30)}",
            )
            reply = await self._ask(pool, header)
            if reply is None or reply.code:
                await asyncio.sleep(entropy.between(0.1, 1.0))
                continue
            for message, handle in _with_handles(reply, self._brokers.name):
                self._journal.note(name, f"pops with {handle.encode()}", message.keys[0])
                held = self.record.came(message.keys[0], handle)
                await self._do(pool, message.keys[0], handle, held, entropy)
        await pool.close()

    @property
    def _broker(self) -> Machine:
        return self._brokers.master()

    async def _ask(self, pool: Pool, header: Header, body: bytes = b"") -> Command | None:
        address = f"{self._broker.address}:{BROKER_PORT}"
        deadline = Deadline.after(_CALL_SECONDS)
        try:
            return await pool.call(address, header, body=body, deadline=deadline)
        except TransportError:
            return None

    async def _do(
        self, pool: Pool, key: str, handle: PopHandle, held: Held, entropy: SeededEntropy
    ) -> None:
        """Works on a message: it is done, forgotten, or hidden for longer."""
        await asyncio.sleep(entropy.between(0.0, 0.5))
        if not self.is_careful and entropy.happens(0.25):
            return
        if not self.is_careful and entropy.happens(0.2):
            hidden_ms = int(entropy.between(500, 20_000))
            changed = await self._hide(pool, key, handle, held, hidden_ms)
            if changed is None or entropy.happens(0.3):
                return
            handle = changed
        if handle.pop_ms == held.pop_ms:
            held.is_unsure = True  # from now on the broker may have it
        reply = await self._ask(
            pool,
            AckMessage(
                consumer_group=GROUP,
                topic=topic_of(TOPIC, GROUP, handle.kind),
                queue_id=handle.queue_number,
                extra_info=handle.encode(),
                offset=handle.offset,
            ),
        )
        if handle.pop_ms != held.pop_ms:
            return
        is_in_time = self._scenario.keeps_time and self._broker.clock.now_ms() < handle.due_ms
        if reply is not None and reply.code == 0 and is_in_time:
            held.is_done = True
            self._journal.note("group", "has done", key)
        elif reply is not None and reply.code == _GONE:
            held.is_unsure = False
        else:
            held.due_ms = 0

    async def _hide(
        self, pool: Pool, key: str, handle: PopHandle, held: Held, hidden_ms: int
    ) -> PopHandle | None:
        if handle.pop_ms == held.pop_ms:
            held.due_ms = 0  # until the new time is known
        reply = await self._ask(
            pool,
            ChangeInvisible(
                consumer_group=GROUP,
                topic=topic_of(TOPIC, GROUP, handle.kind),
                queue_id=handle.queue_number,
                extra_info=handle.encode(),
                offset=handle.offset,
                invisible_time=hidden_ms,
            ),
        )
        if reply is None or reply.code or handle.pop_ms != held.pop_ms:
            return None
        if self._broker.clock.now_ms() >= handle.due_ms:
            return None  # it was late: the message may have come again meanwhile
        found = reply.read(InvisibleReply)
        changed = handle._replace(pop_ms=found.pop_time, invisible_ms=found.invisible_time)
        if not handle.is_in_order:
            changed = changed._replace(start_offset=handle.offset)
        held.pop_ms, held.due_ms = changed.pop_ms, changed.due_ms
        self._journal.note("group", f"hides until {changed.due_ms}", key)
        return changed


_GONE = 208


def _with_handles(reply: Command, broker: str) -> list[tuple[StoredMessage, PopHandle]]:
    """The messages of a pop's reply, with the handles that a client makes."""
    header = reply.read(PopReply)
    starts = read_offsets(header.start_offset_info or "")
    found = []
    for message in scan(bytes(reply.body)):
        text = message.properties.get("POP_CK")
        kind, number = kind_of(message.topic), message.queue.number
        handle = PopHandle.parse(text) if text else PopHandle(
            starts[kind, number][0], header.pop_time, header.invisible_time, header.revive_qid,
            kind, broker, number, message.queue_offset,
        )  # fmt: skip
        found.append((message, handle))
    return found


class _PoppedRun:
    def __init__(self, scenario: PopScenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self.brokers = PoppedBrokers(
            network, seed, members=scenario.members, store=scenario.store,
            sync_seconds=scenario.sync_seconds,
        )  # fmt: skip
        self.cluster = self.brokers.cluster
        self.members = _Poppers(scenario, self.brokers, self.journal, self.entropy.fork("work"))
        self.observer = Observer(self.cluster, TOPIC, QUEUES, group=GROUP)

    async def play(self) -> HistoryOutcome:
        await self.brokers.start()
        await self.observer.create_topic(self.brokers.master())
        members = self.members
        sending = asyncio.ensure_future(members.send_all())
        working = [asyncio.ensure_future(members.work(f"worker{n}")) for n in range(MEMBERS)]
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        weather = Weather(
            self.cluster, members, entropy=self.entropy.fork("weather"), journal=self.journal
        )
        if self.scenario.faults:
            await weather.pass_over(self.scenario.faults, self.scenario.count, seconds=45.0)
        await weather.clear()
        await sending
        await self.brokers.until_whole()
        members.is_careful = True
        await self._until_all_done(working)
        members.is_over = True
        await asyncio.gather(*working)
        supervising.cancel()
        await self.observer.close()
        await self.cluster.stop()
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            members.tried,
            len(members.sent),
            members.record.given,
            self.journal,
        )

    # Nothing that was given out can come again after this long: a worker hides for 20 s at most.
    async def _until_all_done(self, working: Sequence[asyncio.Future[None]]) -> None:
        give_up = self.network.now() + QUIET_SECONDS_MAX
        rest_until = self.network.now() + 45.0
        while self.members.missing or self.network.now() < rest_until:
            for each in working:
                if each.done():
                    await each
            if self.network.now() > give_up:
                missing = self.members.missing
                raise Violation(
                    f"{min(missing)} was stored and never done, of {len(missing)} that were not"
                )
            await asyncio.sleep(1.0)


def play(name: str, seed: int) -> HistoryOutcome:
    """Runs a scenario of `POPPED`.

    Raises:
        Violation: an invariant does not hold; the text has scenario and seed.
    """
    return play_history(name, seed, lambda network, words: _PoppedRun(POPPED[name], network, words))
