"""Runs a history of consumption: a time with faults, then quiet, and checks of the invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sprocket.base.errors import ReplyError, TransportError
from sprocket.client.group.local_offsets import decode
from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.message import StoredMessage
from sprocket.message.properties import DELAY_LEVEL_MAX, REAL_TOPIC
from sprocket.message.queue import QueueId
from sprocket.message.topic import SCHEDULE, dead_letter_topic, retry_topic
from sprocket.testing import invariants
from sprocket.testing.cluster import Cluster
from sprocket.testing.crowd import Crowd, Group
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.groups import GroupRecord
from sprocket.testing.history import HistoryOutcome
from sprocket.testing.journal import Journal, key_of
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.owners import Owners
from sprocket.testing.weather import Weather

if TYPE_CHECKING:
    from sprocket.testing.scenarios import Scenario

#: Most seconds of virtual time after the last fault until producers have ended, until all messages
#: are consumed, and until every broker has taken one more message.
SENDING_SECONDS_MAX = 120.0
QUIET_SECONDS_MAX = 600.0
ANSWER_SECONDS_MAX = 30.0
_LOOK_SECONDS = 1.0
#: Virtual time after which a broker that does not answer fails the run.
_GIVE_UP_SECONDS = 3_600.0
#: Seconds between two checks of delayed messages.
_DELAYS_SECONDS = 31.0

Stored = dict[QueueId, list[StoredMessage]]


class ConsumingRun:
    """One history.

    Args:
        scenario: its cluster, clients and faults.
        network: the simulated network.
        seed: the seed of everything else.
    """

    def __init__(self, scenario: Scenario, network: Network, seed: str) -> None:
        self.scenario = scenario
        self.network = network
        self.seed = seed
        self.entropy = SeededEntropy(seed)
        self.journal = Journal(network)
        self._committed: list[tuple[Group, Observer]] = []
        self._topics: dict[str, Observer] = {}

    # `_watch` checks during the faults what must always hold; the other invariants can hold only
    # when all is consumed. It waits for that twice: the messages sent between show that every
    # broker still takes new ones, not only that the old ones have come through.
    async def play(self) -> HistoryOutcome:
        """Runs the history to its end.

        Raises:
            Violation: an invariant does not hold.
        """
        scenario = self.scenario
        self.cluster = Cluster(
            self.network,
            self.seed,
            nameservers=scenario.nameservers,
            brokers=scenario.brokers,
            store=scenario.store,
            sync_seconds=scenario.sync_seconds,
        )
        self.crowd = Crowd(
            self.cluster,
            self.journal,
            entropy=self.entropy.fork("work"),
            traffic=scenario.traffic,
            styles=scenario.styles,
        )
        await self.cluster.start()
        await self._observe()
        owners = Owners(self.journal, self.crowd.groups, self._all_queues)
        watching = asyncio.ensure_future(self._watch())
        supervising = asyncio.ensure_future(self.cluster.supervise(self.journal))
        counting = asyncio.ensure_future(owners.watch())
        await self._bad_times()
        await self._quiet_times(watching)
        await self._one_more()
        await self._quiet_times(watching)
        counting.cancel()
        watching.cancel()
        supervising.cancel()
        await self._look_at_the_end()
        await self.crowd.close()
        for observer in {*self._topics.values(), *(each for _, each in self._committed)}:
            await observer.close()
        await self.cluster.stop()
        return self._outcome()

    def _outcome(self) -> HistoryOutcome:
        return HistoryOutcome(
            self.network.history,
            self.network.now(),
            len(self.journal.bodies),
            len(self.journal.acknowledged),
            sum(self.journal.deliveries.values()),
            self.journal,
        )

    async def _observe(self) -> None:
        """Creates the topics and their observers."""
        traffic = self.scenario.traffic
        for topic in traffic.topics:
            self._topics[topic] = Observer(self.cluster, topic, traffic.queues, group="nobody")
            await self._topics[topic].create_topic(keeps_batches=traffic.keeps_batches)
        self._topics[SCHEDULE] = Observer(self.cluster, SCHEDULE, DELAY_LEVEL_MAX, group="nobody")
        for group in self.crowd.groups:
            name = group.style.name
            for topic, queues in ((retry_topic(name), 1), (dead_letter_topic(name), 1)):
                self._topics[topic] = Observer(self.cluster, topic, queues, group="nobody")
            if group.style.kind != "broadcasting":
                wanted = [(topic, traffic.queues) for topic in group.style.topics]
                for topic, queues in [*wanted, (retry_topic(name), 1)]:
                    observer = Observer(self.cluster, topic, queues, group=name)
                    self._committed.append((group, observer))

    def _all_queues(self, group: Group) -> list[QueueId]:
        """All queues that a group shares, without its retry topic."""
        return [
            QueueId(topic, broker.name, number)
            for topic in group.style.topics
            for broker in self.cluster.brokers
            for number in range(self.scenario.traffic.queues)
        ]

    async def _bad_times(self) -> None:
        """Runs all clients while faults happen."""
        scenario, seconds = self.scenario, self.scenario.traffic.seconds
        await self.crowd.start()
        sending = [asyncio.ensure_future(each) for each in self.crowd.send_all()]
        weather = Weather(
            self.cluster,
            self.crowd,
            entropy=self.entropy.fork("weather"),
            journal=self.journal,
            more=self.crowd.faults(),
        )
        if scenario.faults and scenario.pause_seconds:
            for _ in range(scenario.count):
                await asyncio.sleep(scenario.pause_seconds)
                await weather.pass_over(scenario.faults, 1, seconds=1.0)
        elif scenario.faults:
            await weather.pass_over(scenario.faults, scenario.count, seconds=seconds)
        await weather.clear()
        self.crowd.complete()
        _, left = await asyncio.wait(sending, timeout=SENDING_SECONDS_MAX)
        if left:
            raise invariants.Violation(f"{len(left)} producers do not come to an end")
        for each in sending:
            await each

    async def _one_more(self) -> None:
        """Sends one more message to every broker, which must take it within a time."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self.crowd.send_one_to_each_broker()
        except TimeoutError:
            raise invariants.Violation(
                f"a broker takes no message {ANSWER_SECONDS_MAX:g} s after all came to rest\n"
                f"{self.journal.story('')}"
            ) from None

    async def _quiet_times(self, watching: asyncio.Future[None]) -> None:
        """Waits until all messages are consumed and committed."""
        began = self.network.now()
        give_up = began + QUIET_SECONDS_MAX
        traffic = self.scenario.traffic
        waits = bool(traffic.delayed or traffic.failures or traffic.poison)
        while self.network.now() < give_up:
            if watching.done():
                await watching
            if await self._missing():
                await asyncio.sleep(max(_LOOK_SECONDS, (self.network.now() - began) / 20))
            elif waits and await self._waiting_count():  # copies that no group needs any more
                await asyncio.sleep(_DELAYS_SECONDS)
            else:
                return
        await self._look_at_the_end()
        raise invariants.Violation(f"it does not come to rest: {await self._missing()}")

    async def _missing(self) -> list[str]:
        """What is not consumed or not committed yet, as texts."""
        try:
            return await self._look_for_missing()
        except (TransportError, ReplyError) as error:
            return [f"a broker does not answer: {error}"]

    async def _look_for_missing(self) -> list[str]:
        missing = []
        dead = await self._dead()
        for group in self.crowd.groups:
            for record in group.records:
                wanted = {k for k in self.journal.sent_to(record.topics) if record.wants(k)}
                left = wanted - record.finished - dead[group.style.name].keys()
                if left:
                    missing.append(f"{len(left)} messages for {record.name}: {sorted(left)[:3]}")
        if missing:
            return missing
        for group, observer in self._committed:
            ends, committed = await observer.ends(), await observer.committed()
            for queue, end in ends.items():
                at = committed.get(queue, 0)
                if at != end:
                    missing.append(f"{group.style.name} is at {at} of {end} in {queue}")
        return missing

    async def _waiting_count(self) -> int:
        """Number of delayed messages that wait; 1 if a broker does not answer."""
        try:
            arrived, waiting = await self._arrived()
        except (TransportError, ReplyError):
            return 1
        went, came = (sum(map(len, each.values())) for each in (waiting, arrived))
        return max(went - came, 0)

    async def _dead(self) -> dict[str, dict[str, int]]:
        """By group, the number of dead letters with each key."""
        found: dict[str, dict[str, int]] = {}
        for group in self.crowd.groups:
            counts = found[group.style.name] = {}
            stored = await self._topics[dead_letter_topic(group.style.name)].stored()
            for message in (message for messages in stored.values() for message in messages):
                counts[key_of(message)] = counts.get(key_of(message), 0) + 1
        return found

    async def _watch(self) -> None:
        """Checks every second the invariants that must always hold."""
        while True:
            for group, observer in self._committed:
                await self._look_at_committed(group, observer)
            for group in self.crowd.groups:
                if group.style.kind == "broadcasting":
                    self._look_at_local(group)
            if self.journal.complaints:
                raise invariants.Violation(self.journal.complaints[0])
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look_at_committed(self, group: Group, observer: Observer) -> None:
        if not group.records:
            return
        # A queue that an operator moved during the query may show either offset, so it is left out.
        record, began = group.records[0], self.network.now()
        moved = {*record.moving}
        committed = await observer.committed()
        moved |= record.moving
        moved |= {queue for queue, move in record.moves.items() if move.at >= began}
        known = {queue: at for queue, at in committed.items() if queue not in moved}
        invariants.committed_passes_only_settled(self.journal, record, known)

    def _look_at_local(self, group: Group) -> None:
        for record in group.records:
            name = record.name.split()[1]
            raw = group.disk(name).read(f"/offsets/{self._client_id(name)}/everybody/offsets.json")
            if raw:
                committed = {queue: int(offset) for queue, offset in decode(raw).items()}
                invariants.committed_passes_only_settled(self.journal, record, committed)

    def _client_id(self, name: str) -> str:
        return f"{self.network.address_of(name)}@{name}"

    async def _look_at_the_end(self) -> None:
        while True:
            try:
                return await self._look_at_everything()
            except (TransportError, ReplyError):
                if self.network.now() > _GIVE_UP_SECONDS:
                    raise
                await asyncio.sleep(_LOOK_SECONDS)

    async def _look_at_everything(self) -> None:
        journal = self.journal
        stored: Stored = {}
        for topic in self.scenario.traffic.topics:
            stored |= await self._topics[topic].stored()
        invariants.stored_is_dense_and_true(journal, stored)
        invariants.acknowledged_is_stored(journal, stored)
        dead = await self._dead()
        for group in self.crowd.groups:
            for record in group.records:
                self._look_at_group(group, record, stored=stored, dead=dead[group.style.name])
        await self._look_at_delays()
        for group, observer in self._committed:
            await self._look_at_committed(group, observer)

    def _look_at_group(
        self, group: Group, record: GroupRecord, *, stored: Stored, dead: Mapping[str, int]
    ) -> None:
        style, journal = group.style, self.journal
        invariants.group_consumed_all(journal, record, dead=dead)
        if style.kind == "ordered":
            invariants.a_queue_has_one_owner(journal, record)
            invariants.a_queue_is_in_order(journal, record)
        if style.kind in ("concurrent", "ordered") and not record.moves and style.batch is None:
            invariants.failed_ends_within_limit(
                journal, record, limit=style.reconsume_max, dead=dead
            )
        bounds = self.scenario
        invariants.owners_come_back(journal, record, seconds_max=bounds.gap_seconds_max)
        invariants.owners_do_not_overlap(journal, record, seconds_max=bounds.overlap_seconds_max)
        ends = {queue: len(messages) for queue, messages in stored.items()}
        invariants.a_move_is_obeyed(journal, record, ends)

    async def _look_at_delays(self) -> None:
        delays_ms = DelayLevels.parse(self.scenario.store.delay_levels)
        arrived, waiting = await self._arrived()
        for broker in self.cluster.brokers:
            there, here = waiting[broker.name], arrived[broker.name]
            invariants.delayed_comes_once(self.journal, there, here)
            if not {"clock", "jump"} & {*self.scenario.faults}:
                delays = [delays_ms.delay_ms(level + 1) for level in range(delays_ms.highest)]
                invariants.delayed_is_not_early(self.journal, there, here, delays_ms=delays)

    async def _arrived(
        self,
    ) -> tuple[dict[str, list[StoredMessage]], dict[str, list[StoredMessage]]]:
        """By broker, messages delivered from the schedule topic, and all messages in it."""
        arrived: dict[str, list[StoredMessage]] = {b.name: [] for b in self.cluster.brokers}
        waiting: dict[str, list[StoredMessage]] = {b.name: [] for b in self.cluster.brokers}
        for topic, observer in self._topics.items():
            for queue, messages in (await observer.stored()).items():
                if topic == SCHEDULE:
                    waiting[queue.broker] += messages
                else:
                    arrived[queue.broker] += [
                        m for m in messages if m.properties.get(REAL_TOPIC) == topic
                    ]
        return arrived, waiting
