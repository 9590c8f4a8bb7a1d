"""Builds the parts of a broker and gives each the others that it needs; nothing runs here.

`request_table` builds the endpoints of all requests over them.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.broker.members.membership import MembershipRequests
from sprocket.broker.members.registration import Registration
from sprocket.broker.members.replication import Replication
from sprocket.broker.operate.figures import BrokerFigures
from sprocket.broker.pop.parts import PopParts
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.reading.read_place import ReadPlaces
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import DelayRules
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.sending.timers import TimerFigures
from sprocket.broker.sending.transactions import (
    LiveProducers,
    ParkingIngress,
    TransactionCounts,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.access import ReadAccess
from sprocket.broker.tables.files import StateFiles
from sprocket.broker.tables.tables import Tables
from sprocket.delay.levels.deliver import LevelDelivery
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.shape import shapes
from sprocket.delay.timers.timed_delivery import TimedDelivery
from sprocket.delay.timers.timers import Timers
from sprocket.message.ids import UniqueIds
from sprocket.remoting.pool import Pool
from sprocket.store.store import Store
from sprocket.transaction.check import CheckRules
from sprocket.transaction.check_loop import CheckLoop
from sprocket.transaction.settle import Settlement

_PROCESSES = 1 << 16


class Ports(NamedTuple):
    """The ports through which a broker reaches the machine, and how much memory that has."""

    disk: Disk
    clock: Clock
    entropy: Entropy
    memory_bytes: int


class Location(NamedTuple):
    """Where a broker keeps its files and where it is reached.

    Attributes:
        root: its folder.
        address, ha_address: `host:port` for clients and for slaves.
        packed: the address in the binary form of records.
    """

    root: str
    address: str
    ha_address: str
    packed: bytes


class BrokerParts:
    """All parts between the connections and the store.

    Args:
        store: the opened store.
        pool: connections to the name servers.
        replication: how the log is copied, which needs nothing of these parts.
    """

    # The lines are in the order of dependencies: ingress needs the timers, settlement and delivery
    # need ingress, the figures need all. The tables call back only after all parts exist.
    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        *,
        levels: DelayLevels,
        world: Ports,
        place: Location,
        pool: Pool,
        replication: Replication,
    ) -> None:
        clock, host = world.clock, place.packed
        self.replication, self.pool = replication, pool
        self._store, self._queue_count = store, 0
        tables = self.tables = self._tables(settings, clock, levels)
        self.files = StateFiles(tables, store, world.disk, place.root)
        self.timers = self._timers(store, settings, world=world, root=place.root)
        self.registration = Registration(
            pool,
            tables.topics,
            settings=settings,
            address=place.address,
            ha_address=place.ha_address,
            on_master=replication.master.learn,
        )
        self.delay_rules = DelayRules.of(settings, levels)
        self.ingress = Ingress(
            store,
            rules=self.delay_rules,
            settings=settings,
            topics=tables.topics,
            volumes=tables.volumes,
            clock=world.clock,
            ledger=tables.ledger,
            timers=self.timers,
            check_copies=replication.check_copies if replication.is_waiting else None,
        )
        self.settlement = self._settlement(store, clock=clock, host=host)
        self.check_loop = self._check_loop(self.settlement, settings, clock=clock, host=host)
        self.delivery = self._delivery(store, levels, clock=clock)
        self.timed_delivery = self._timed_delivery(store, settings, clock=clock)
        self.membership = MembershipRequests(
            tables.clients,
            topics=tables.topics,
            groups=tables.groups,
            settings=settings,
            clock=world.clock,
        )
        self.pulls = self._pulls(store, settings, world.memory_bytes)
        self.state = self._state(store, clock=clock)
        self.stamp = Stamp(settings.config, ids=_ids(world.entropy, place))
        self.acknowledgement = Acknowledgement(store, settings, host, replication)
        self.pop = self._pop(store, settings, world=world, host=host)

    def copied(self) -> None:
        """Makes the topics known whose first messages were copied from a master."""
        count = self._store.replica.queue_count
        if count != self._queue_count:
            self._queue_count = count
            self.tables.topics.add_missing(self._store.queues())

    def _pulls(self, store: Store, settings: BrokerSettings, memory_bytes: int) -> PullRequests:
        """Endpoints of pulls."""
        tables = self.tables
        access = ReadAccess(
            tables.topics,
            tables.groups,
            clients=tables.clients,
            settings=settings,
            filters=tables.filters,
        )
        places = ReadPlaces(
            store, settings, replication=self.replication, memory_bytes=memory_bytes
        )
        return PullRequests(
            store,
            access,
            offsets=tables.offsets,
            settings=settings,
            volumes=tables.volumes,
            places=places,
        )

    def _tables(self, settings: BrokerSettings, clock: Clock, levels: DelayLevels) -> Tables:
        """All tables, whose changes are saved in their files."""
        return Tables(
            settings,
            clock,
            levels=levels,
            on_topic=self._topic_changed,
            on_group=self._group_changed,
            on_filters=self._filters_changed,
            on_pop_order=lambda: self.files.pop_orders.changed(),
            on_mode=lambda: self.files.request_modes.changed(),
        )

    def _pop(
        self, store: Store, settings: BrokerSettings, *, world: Ports, host: bytes
    ) -> PopParts:
        """Pop consumption."""
        return PopParts(
            store, self.tables, self.ingress, self.acknowledgement, timers=self.timers,
            settings=settings, clock=world.clock, entropy=world.entropy, host=host,
            orders_saved=self.files.pop_orders.written,
        )  # fmt: skip

    def _timers(
        self, store: Store, settings: BrokerSettings, *, world: Ports, root: str
    ) -> Timers | None:
        """The timers of messages with a delivery time of their own; None if they are off."""
        if not settings.store.timers:
            return None
        return Timers(
            store,
            world.disk,
            root,
            shape=shapes(lambda: settings.store),
            clock=world.clock,
            counts=self.tables.timer_counts,
        )

    def _delivery(self, store: Store, levels: DelayLevels, *, clock: Clock) -> LevelDelivery:
        """Delivery of messages with a delay level."""
        accept, progress = self.ingress.accept_due, self.tables.progress
        return LevelDelivery(store, accept, levels=levels, progress=progress, clock=clock)

    def _timed_delivery(
        self, store: Store, settings: BrokerSettings, *, clock: Clock
    ) -> TimedDelivery | None:
        """Delivery of messages with a delivery time of their own; None if timers are off."""
        if self.timers is None:
            return None
        return TimedDelivery(
            self.timers,
            store,
            self.ingress.accept_due,
            clock=clock,
            save_ms=settings.store.timer_flush_interval_ms,
        )

    def _state(self, store: Store, *, clock: Clock) -> BrokerFigures:
        """Figures that the broker reports about itself."""
        timers = None
        if self.timers is not None and self.timed_delivery is not None:
            timers = TimerFigures(self.timers, self.timed_delivery, clock)
        return BrokerFigures(
            store,
            self.ingress,
            pulls=self.pulls,
            volumes=self.tables.volumes,
            clock=clock,
            timers=timers,
            transactions=TransactionCounts(self.tables.ledger, self.settlement, self.check_loop),
        )

    def _settlement(self, store: Store, *, clock: Clock, host: bytes) -> Settlement:
        """Commit and rollback of transactions."""
        tables = self.tables
        return Settlement(
            store,
            ParkingIngress(self.ingress, tables.topics),
            ledger=tables.ledger,
            offsets=tables.offsets,
            clock=clock,
            host=host,
        )

    def _check_loop(
        self, settlement: Settlement, settings: BrokerSettings, *, clock: Clock, host: bytes
    ) -> CheckLoop:
        """The checks that ask producers how an undecided transaction ended."""
        tables = self.tables

        def rules() -> CheckRules:
            config = settings.config
            return CheckRules(
                config.transaction_timeout_ms,
                config.transaction_check_ms,
                config.transaction_checks_max,
            )

        return CheckLoop(
            settlement,
            tables.ledger,
            producers=LiveProducers(tables.clients, broker_name=settings.config.name, host=host),
            rules=rules,
            clock=clock,
        )

    def _topic_changed(self, name: str) -> None:
        self.files.topics.changed()
        self.registration.changed(name)

    def _group_changed(self, name: str) -> None:
        self.files.groups.changed()

    def _filters_changed(self) -> None:
        self.files.filters.changed()


def _ids(entropy: Entropy, place: Location) -> UniqueIds:
    process, token = entropy.below(_PROCESSES), entropy.token(4)
    return UniqueIds(address=place.packed[:-4], process=process, token=token)
