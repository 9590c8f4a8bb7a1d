"""Builds the parts of a broker and gives each the others that it needs; nothing runs here."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.broker.dispatch import Dispatch, Endpoints, RunEndpoints
from sprocket.broker.members.membership import MembershipRequests
from sprocket.broker.members.registration import Registration
from sprocket.broker.operate.connections import ConnectionRequests
from sprocket.broker.operate.entries import EntryRequests
from sprocket.broker.operate.figures import BrokerFigures, FigureRequests
from sprocket.broker.operate.groups import GroupRequests
from sprocket.broker.operate.progress import ProgressRequests
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.operate.resets import ResetRequests
from sprocket.broker.operate.settings import SettingRequests
from sprocket.broker.operate.topics import TopicRequests
from sprocket.broker.operate.volumes import VolumeRequests
from sprocket.broker.reading.positions import OffsetRequests
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.reading.query import QueryRequests
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import DelayRules
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import Placing, SendReader
from sprocket.broker.sending.replies import Replies
from sprocket.broker.sending.retries import SendBacks
from sprocket.broker.sending.run_reader import RunReader
from sprocket.broker.sending.send import Sends
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.sending.timers import TimerFigures, TimerRequests
from sprocket.broker.sending.transactions import (
    LiveProducers,
    ParkingIngress,
    TransactionCounts,
    TransactionRequests,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.access import ReadAccess
from sprocket.broker.tables.files import StateFiles
from sprocket.broker.tables.locks import LockRequests
from sprocket.broker.tables.state import once_saved
from sprocket.broker.tables.tables import Tables
from sprocket.delay.levels.deliver import LevelDelivery
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.shape import Shape
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
    """The ports through which a broker reaches the machine."""

    disk: Disk
    clock: Clock
    entropy: Entropy


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

    Attributes:
        dispatch: calls the endpoint of each request.
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
    ) -> None:
        clock, host = world.clock, place.packed
        tables = self.tables = Tables(
            settings,
            clock,
            levels=levels,
            on_topic=self._topic_changed,
            on_group=self._group_changed,
            on_filters=self._filters_changed,
        )
        self.files = StateFiles(tables, store, world.disk, place.root)
        self.timers = self._timers(store, settings, world=world, root=place.root)
        self.registration = Registration(
            pool,
            tables.topics,
            settings=settings,
            address=place.address,
            ha_address=place.ha_address,
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
        self.pulls = self._pulls(store, settings)
        self.state = self._state(store, clock=clock)
        self.stamp = Stamp(settings.config, ids=_ids(world.entropy, place))
        self.acknowledgement = Acknowledgement(store, settings, store_host=host)
        messages, runs = self._messages(store, settings, world=world, address=place.address)
        table = {**messages, **self._consumers(store)}
        table |= self._operators(store, settings, clock=clock, address=place.address)
        self.dispatch = Dispatch(
            table, refusals=self.acknowledgement.refusals(), run_endpoints=runs
        )

    def _pulls(self, store: Store, settings: BrokerSettings) -> PullRequests:
        """Endpoints of pulls."""
        tables = self.tables
        access = ReadAccess(
            tables.topics,
            tables.groups,
            clients=tables.clients,
            settings=settings,
            filters=tables.filters,
        )
        offsets, volumes = tables.offsets, tables.volumes
        return PullRequests(store, access, offsets=offsets, settings=settings, volumes=volumes)

    def _timers(
        self, store: Store, settings: BrokerSettings, *, world: Ports, root: str
    ) -> Timers | None:
        """The timers of messages with a delivery time of their own; None if they are off."""
        if not settings.store.timers:
            return None
        shape = Shape.of(settings.store)
        return Timers(
            store, world.disk, root, shape=shape, clock=world.clock, counts=self.tables.timer_counts
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

    def _messages(
        self, store: Store, settings: BrokerSettings, *, world: Ports, address: str
    ) -> tuple[Endpoints, RunEndpoints]:
        """Endpoints that store and read messages, and those for sends that arrive together."""
        tables = self.tables
        rules = GroupRules(
            tables.topics,
            tables.groups,
            locks=tables.locks,
            settings=settings,
            entropy=world.entropy,
        )
        placing = Placing(tables.topics, settings=settings, entropy=world.entropy)
        reader = SendReader(
            placing,
            rules=rules,
            stamp=self.stamp,
            clock=world.clock,
            batch_bytes_max=settings.store.message_bytes_max,
        )
        runs = RunReader(placing, self.stamp, self.delay_rules, world.clock)
        sends = Sends(reader, runs, self.ingress, self.acknowledgement)
        send_backs = SendBacks(
            store, self.ingress, self.acknowledgement, rules=rules, volumes=tables.volumes
        )
        replies = Replies(
            tables.clients,
            placing,
            self.ingress,
            self.acknowledgement,
            stamp=self.stamp,
            clock=world.clock,
            address=address,
        )
        transactions = TransactionRequests(store, self.acknowledgement, settlement=self.settlement)
        endpoints = {
            **sends.endpoints(),
            **replies.endpoints(),
            **send_backs.endpoints(),
            **self.pulls.endpoints(),
            **QueryRequests(store).endpoints(),
            **transactions.endpoints(),
            **TimerRequests(
                self.timers,
                self.ingress,
                self.acknowledgement,
                topics=tables.topics,
                settings=settings,
                clock=world.clock,
            ).endpoints(),
        }
        return endpoints, sends.runs()

    def _consumers(self, store: Store) -> Endpoints:
        """Endpoints for heartbeats, filters, consumer offsets and queue locks."""
        tables = self.tables
        positions = OffsetRequests(
            store,
            tables.offsets,
            topics=tables.topics,
            groups=tables.groups,
            clients=tables.clients,
        )
        return {
            **self.membership.endpoints(),
            **once_saved(
                tables.filters.endpoints(), self.files.filters, reports_failure=True
            ),
            **positions.endpoints(),
            **LockRequests(tables.locks, self.files.locks).endpoints(),
        }

    def _operators(
        self, store: Store, settings: BrokerSettings, *, clock: Clock, address: str
    ) -> Endpoints:
        """Endpoints for operators."""
        tables = self.tables
        queues = TopicQueueOffsets(tables.topics, store, broker_name=settings.config.name)
        save_offsets = self.files.offset_rounds.save_at_once
        groups = GroupRequests(
            tables.groups,
            tables.clients,
            offsets=tables.offsets,
            locks=tables.locks,
            volumes=tables.volumes,
            address=address,
            lock_file=self.files.locks,
            save_groups=self.files.groups.written,
            save_offsets=save_offsets,
        )
        offsets, clients, volumes = tables.offsets, tables.clients, tables.volumes
        topics = TopicRequests(
            tables.topics, store, self.pulls, offsets=offsets, clients=clients, volumes=volumes,
            save_topics=self.files.topics.written, save_offsets=save_offsets,
        )  # fmt: skip
        connections = ConnectionRequests(
            tables.clients,
            store,
            topics=tables.topics,
            groups=tables.groups,
            broker_name=settings.config.name,
        )
        named = {**topics.endpoints(), **groups.endpoints()}
        return {
            **once_saved(
                named, self.files.topics, self.files.groups, self.files.locks, reports_failure=True
            ),
            **self._positions(queues, settings, clock=clock, address=address),
            **FigureRequests(queues, tables.offsets, state=self.state).endpoints(),
            **VolumeRequests(tables.volumes, clock, cluster=settings.config.cluster).endpoints(),
            **connections.endpoints(),
            **EntryRequests(store, tables.clients).endpoints(),
            **SettingRequests(settings, on_permission=self.registration.register_all).endpoints(),
        }

    def _positions(
        self, queues: TopicQueueOffsets, settings: BrokerSettings, *, clock: Clock, address: str
    ) -> Endpoints:
        """Endpoints that show and reset consumer offsets."""
        tables = self.tables
        progress = ProgressRequests(
            queues,
            tables.offsets,
            groups=tables.groups,
            clients=tables.clients,
            volumes=tables.volumes,
            clock=clock,
            address=address,
        )
        resets = ResetRequests(
            queues,
            tables.offsets,
            groups=tables.groups,
            clients=tables.clients,
            pulls=self.pulls,
            settings=settings,
            save=self.files.offset_rounds.save_at_once,
        )
        return {**progress.endpoints(), **resets.endpoints()}


def _ids(entropy: Entropy, place: Location) -> UniqueIds:
    process, token = entropy.below(_PROCESSES), entropy.token(4)
    return UniqueIds(address=place.packed[:-4], process=process, token=token)
