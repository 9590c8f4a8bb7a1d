"""The parts of a broker and what each of them is given.

Nothing happens here: parts are made, in the order in which they need each other, and their answers
are put into one table.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.broker.access import ReadAccess
from sprocket.broker.clients import Clients
from sprocket.broker.code_filters import CodeFilters
from sprocket.broker.dispatch import Answers, Dispatch, Runs
from sprocket.broker.groups import Groups
from sprocket.broker.ingress import Ingress
from sprocket.broker.locks import Locks, LockTable, lease_ms
from sprocket.broker.membership import Membership
from sprocket.broker.offsets import ConsumerOffsets
from sprocket.broker.operate.connections import ConnectionRequests
from sprocket.broker.operate.entries import EntryRequests
from sprocket.broker.operate.figures import FigureRequests, State
from sprocket.broker.operate.groups import GroupRequests
from sprocket.broker.operate.progress import ProgressRequests
from sprocket.broker.operate.queues import Queues
from sprocket.broker.operate.resets import ResetRequests
from sprocket.broker.operate.settings import SettingRequests
from sprocket.broker.operate.topics import TopicRequests
from sprocket.broker.operate.volumes import VolumeRequests
from sprocket.broker.plain_sends import PlainSends
from sprocket.broker.positions import Positions
from sprocket.broker.pull import Pulls
from sprocket.broker.query import Queries
from sprocket.broker.queue_locks import QueueLocks
from sprocket.broker.registration import Registration
from sprocket.broker.replies import Replies
from sprocket.broker.retries import GroupRules, SendBacks
from sprocket.broker.send import Placing, Sends
from sprocket.broker.settings import Settings
from sprocket.broker.stamp import Stamp
from sprocket.broker.state import Rounds, StateFile, once_saved
from sprocket.broker.timers import TimerFigures, TimerRequests
from sprocket.broker.topics import Topics, own_topics
from sprocket.broker.transactions import LiveProducers, ParkingIngress, Tally, Transactions
from sprocket.broker.volumes import Volumes
from sprocket.delay.counts import Counts
from sprocket.delay.deliver import Delivery
from sprocket.delay.levels import DelayLevels
from sprocket.delay.schedule import Progress
from sprocket.delay.shape import Shape
from sprocket.delay.timed_delivery import TimedDelivery
from sprocket.delay.timers import Timers
from sprocket.message.ids import UniqueIds
from sprocket.remoting.pool import Pool
from sprocket.store.store import Store
from sprocket.transaction.asking import Asking
from sprocket.transaction.check import Rules
from sprocket.transaction.ledger import Ledger
from sprocket.transaction.pending import Pending
from sprocket.transaction.settle import Settlement

_PROCESSES = 1 << 16
_LEASE_SCAN_SECONDS = 20.0


class World(NamedTuple):
    """The ports that a broker gets."""

    disk: Disk
    clock: Clock
    entropy: Entropy


class Place(NamedTuple):
    """Where a broker is.

    Attributes:
        root: its folder.
        address, ha_address: where clients and slaves reach it.
        packed: the address as records carry it.
    """

    root: str
    address: str
    ha_address: str
    packed: bytes


class Parts:
    """Everything between the connections and the store.

    Args:
        store: open.
        pool: connections to the name servers.

    Attributes:
        dispatch: answers requests.
    """

    def __init__(
        self, store: Store, settings: Settings, *, world: World, place: Place, pool: Pool
    ) -> None:
        config = settings.config
        levels = DelayLevels.parse(settings.store.delay_levels)
        self._tables(settings, levels=levels, world=world)
        self._files(store, disk=world.disk, root=place.root)
        self.timers = self._timers(store, settings, world=world, root=place.root)
        self.registration = Registration(
            pool,
            self.topics,
            settings=settings,
            address=place.address,
            ha_address=place.ha_address,
        )
        self.ingress = Ingress(
            store,
            levels=levels,
            settings=settings,
            volumes=self.volumes,
            clock=world.clock,
            ledger=self.ledger,
            timers=self.timers,
        )
        self._settling(store, settings, clock=world.clock, host=place.packed)
        figures = self._delivering(store, settings, levels=levels, clock=world.clock)
        self.membership = Membership(
            self.clients,
            topics=self.topics,
            groups=self.groups,
            settings=settings,
            clock=world.clock,
        )
        self.pulls = self._pulls(store, settings)
        self.state = State(
            store,
            self.ingress,
            pulls=self.pulls,
            volumes=self.volumes,
            clock=world.clock,
            timers=figures,
            transactions=Tally(self.ledger, self.settlement, self.asking),
        )
        ids = UniqueIds(
            address=place.packed[:-4],
            process=world.entropy.below(_PROCESSES),
            token=world.entropy.token(4),
        )
        self.stamp = Stamp(config, ids=ids, store_host=place.packed)
        answers = {
            **self._messages(store, settings, world=world, address=place.address),
            **self._consumers(store),
            **self._operators(store, settings, clock=world.clock, address=place.address),
        }
        self.dispatch = Dispatch(answers, refusals=self.stamp.refusals(), runs=self._runs)

    def _tables(self, settings: Settings, *, levels: DelayLevels, world: World) -> None:
        config, clock = settings.config, world.clock
        own = own_topics(config, delay_levels=levels.highest)
        self.topics = Topics(own, settings, clock=clock, on_change=self._topic_changed)
        self.groups = Groups(settings, clock=clock, on_change=self._group_changed)
        self.offsets = ConsumerOffsets(clock, entries_max=config.offsets_max)
        self.clients = Clients(members_max=config.members_max)
        self.locks = QueueLocks(config.lock_lease_ms)
        self.lock_table = LockTable(self.locks, clock)
        self.volumes = Volumes(clock.now_ms())
        self.progress = Progress()
        self.timer_counts = Counts()
        self.ledger = Ledger()
        self.pending = Pending(self.ledger, clock)
        self.filters = CodeFilters(settings, clock, on_change=self._filters_changed)

    def _files(self, store: Store, *, disk: Disk, root: str) -> None:
        folder = f"{root}/config"
        self.topics_file = StateFile(disk, f"{folder}/topics.json", self.topics)
        self.groups_file = StateFile(disk, f"{folder}/subscriptionGroup.json", self.groups)
        offsets = StateFile(disk, f"{folder}/consumerOffset.json", self.offsets)
        delays = StateFile(disk, f"{folder}/delayOffset.json", self.progress)
        self.timer_counts_file = StateFile(disk, f"{folder}/timermetrics", self.timer_counts)
        pending = StateFile(disk, f"{folder}/transactionMetrics", self.pending)
        own = (self.topics_file, self.groups_file, offsets, delays, pending)
        self.files: tuple[StateFile, ...] = (*own, self.timer_counts_file)
        self.filters_file = StateFile(disk, f"{folder}/filterCode.json", self.filters.uploads)
        if self.filters.is_on:
            self.files = (*self.files, self.filters_file)
        self.locks_file = StateFile(disk, f"{folder}/queueLocks.json", self.lock_table)
        self.files = (*self.files, self.locks_file)
        self.offset_rounds = Rounds(offsets, self.offsets, store)
        self.delay_rounds = Rounds(delays, self.progress, store)
        self.pending_rounds = Rounds(pending, self.pending, store)
        self.timer_rounds = Rounds(self.timer_counts_file, self.timer_counts, store)

    def _pulls(self, store: Store, settings: Settings) -> Pulls:
        """How messages go out."""
        access = ReadAccess(
            self.topics,
            self.groups,
            clients=self.clients,
            settings=settings,
            filters=self.filters,
        )
        return Pulls(store, access, offsets=self.offsets, settings=settings, volumes=self.volumes)

    def _timers(
        self, store: Store, settings: Settings, *, world: World, root: str
    ) -> Timers | None:
        """What waits for a time of its own, if the broker keeps times."""
        if not settings.store.timers:
            return None
        shape = Shape.of(settings.store)
        return Timers(
            store, world.disk, root, shape=shape, clock=world.clock, counts=self.timer_counts
        )

    def _delivering(
        self, store: Store, settings: Settings, *, levels: DelayLevels, clock: Clock
    ) -> TimerFigures | None:
        """How what waited is delivered."""
        self.delivery = Delivery(
            store,
            self.ingress.accept_due,
            levels=levels,
            progress=self.progress,
            clock=clock,
        )
        self.timed_delivery: TimedDelivery | None = None
        if self.timers is None:
            return None
        self.timed_delivery = TimedDelivery(
            self.timers,
            store,
            self.ingress.accept_due,
            clock=clock,
            save_ms=settings.store.timer_flush_interval_ms,
        )
        return TimerFigures(self.timers, self.timed_delivery, clock)

    def _settling(self, store: Store, settings: Settings, *, clock: Clock, host: bytes) -> None:
        """How transactions end."""

        def rules() -> Rules:
            config = settings.config
            return Rules(
                config.transaction_timeout_ms,
                config.transaction_check_ms,
                config.transaction_checks_max,
            )

        self.settlement = Settlement(
            store,
            ParkingIngress(self.ingress, self.topics),
            ledger=self.ledger,
            offsets=self.offsets,
            clock=clock,
            host=host,
        )
        self.asking = Asking(
            self.settlement,
            self.ledger,
            producers=LiveProducers(self.clients, broker_name=settings.config.name, host=host),
            rules=rules,
            clock=clock,
        )

    def _topic_changed(self, name: str) -> None:
        self.topics_file.changed()
        self.registration.changed(name)

    def _group_changed(self, name: str) -> None:
        self.groups_file.changed()

    def _filters_changed(self) -> None:
        self.filters_file.changed()

    async def expire_leases(self) -> None:
        """Forgets leases that ran out, until cancelled."""
        while True:
            await asyncio.sleep(_LEASE_SCAN_SECONDS)
            self.locks.expire(lease_ms())

    def _messages(self, store: Store, settings: Settings, *, world: World, address: str) -> Answers:
        """Messages in and out."""
        rules = GroupRules(self.topics, self.groups, locks=self.locks)
        placing = Placing(self.topics, settings=settings, entropy=world.entropy)
        sends = Sends(
            self.ingress,
            placing,
            rules=rules,
            stamp=self.stamp,
            clock=world.clock,
            batch_bytes_max=settings.store.message_bytes_max,
        )
        self._runs: Runs = PlainSends(self.ingress, placing, self.stamp).runs()
        send_backs = SendBacks(
            store,
            self.ingress,
            rules=rules,
            settings=settings,
            volumes=self.volumes,
            entropy=world.entropy,
        )
        replies = Replies(
            self.clients,
            placing,
            self.ingress,
            stamp=self.stamp,
            clock=world.clock,
            address=address,
        )
        return {
            **sends.answers(),
            **replies.answers(),
            **send_backs.answers(),
            **self.pulls.answers(),
            **Queries(store).answers(),
            **Transactions(store, self.ingress, settlement=self.settlement).answers(),
            **TimerRequests(
                self.timers,
                self.ingress,
                topics=self.topics,
                settings=settings,
                clock=world.clock,
            ).answers(),
        }

    def _consumers(self, store: Store) -> Answers:
        """Who is there, how far they are, who has which queue."""
        positions = Positions(
            store, self.offsets, topics=self.topics, groups=self.groups, clients=self.clients
        )
        return {
            **self.membership.answers(),
            **self.filters.answers(),
            **positions.answers(),
            **Locks(self.locks, self.locks_file).answers(),
        }

    def _operators(
        self, store: Store, settings: Settings, *, clock: Clock, address: str
    ) -> Answers:
        """What operators ask."""
        queues = Queues(self.topics, store, broker_name=settings.config.name)
        groups = GroupRequests(
            self.groups,
            self.clients,
            offsets=self.offsets,
            locks=self.locks,
            volumes=self.volumes,
            address=address,
        )
        topics = TopicRequests(
            self.topics,
            store,
            offsets=self.offsets,
            clients=self.clients,
            volumes=self.volumes,
        )
        connections = ConnectionRequests(
            self.clients,
            store,
            topics=self.topics,
            groups=self.groups,
            broker_name=settings.config.name,
        )
        named = {**topics.answers(), **groups.answers()}
        return {
            **once_saved(named, self.topics_file, self.groups_file),
            **self._positions(queues, settings, clock=clock, address=address),
            **FigureRequests(queues, self.offsets, state=self.state).answers(),
            **VolumeRequests(self.volumes, clock, cluster=settings.config.cluster).answers(),
            **connections.answers(),
            **EntryRequests(store, self.clients).answers(),
            **SettingRequests(settings, on_permission=self.registration.again).answers(),
        }

    def _positions(
        self, queues: Queues, settings: Settings, *, clock: Clock, address: str
    ) -> Answers:
        """How far consumers are, and where they are to go on."""
        progress = ProgressRequests(
            queues,
            self.offsets,
            groups=self.groups,
            clients=self.clients,
            volumes=self.volumes,
            clock=clock,
            address=address,
        )
        resets = ResetRequests(
            queues,
            self.offsets,
            groups=self.groups,
            clients=self.clients,
            pulls=self.pulls,
            settings=settings,
            save=self.offset_rounds.save_at_once,
        )
        return {**progress.answers(), **resets.answers()}
